package devcluster_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// convertedDefinition stores the size as a number in v1, and serves it as a text in v2.
const convertedDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: disks.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Disk, plural: disks}
  conversion: %s
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties: {spec: {type: object, properties: {size: {type: integer}}}}
    - name: v2
      served: true
      storage: false
      schema:
        openAPIV3Schema:
          type: object
          properties: {spec: {type: object, properties: {capacity: {type: string}}}}
`

// convertDisk converts one object for the conversion webhook.
func convertDisk(object map[string]any, to string) error {
	spec, _ := object["spec"].(map[string]any)
	switch {
	case object["apiVersion"] == to:
	case to == "example.org/v1":
		var size int64
		if _, err := fmt.Sscanf(fmt.Sprint(spec["capacity"]), "%dGi", &size); err != nil {
			return fmt.Errorf("the capacity %v is not in Gi", spec["capacity"])
		}
		object["spec"] = map[string]any{"size": size}
	default:
		object["spec"] = map[string]any{"capacity": fmt.Sprintf("%vGi", spec["size"])}
	}
	object["apiVersion"] = to
	return nil
}

// conversionWebhook serves conversions of disks, and returns the part of the definition for it.
func conversionWebhook(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review apiextensionsv1.ConversionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		answer := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: "Success"}}
		for _, raw := range review.Request.Objects {
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON(raw.Raw); err != nil {
				t.Error(err)
			}
			if err := convertDisk(object.Object, review.Request.DesiredAPIVersion); err != nil {
				answer.Result = metav1.Status{Status: "Failure", Message: err.Error()}
				break
			}
			answer.ConvertedObjects = append(answer.ConvertedObjects, runtime.RawExtension{Object: object})
		}
		review.Request, review.Response = nil, answer
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	authority, err := json.Marshal(pem.EncodeToMemory(&pem.Block{
		Type: "CERTIFICATE", Bytes: server.Certificate().Raw,
	}))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(
		`{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: %q, caBundle: %s}}}`,
		server.URL, authority,
	)
}

// define creates a definition.
func define(t *testing.T, client dynamic.Interface, text string) error {
	t.Helper()
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &crd.Object); err != nil {
		t.Fatal(err)
	}
	_, err := client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")).
		Create(t.Context(), crd, metav1.CreateOptions{})
	return err
}

func dynamicClient(t *testing.T, cluster *devcluster.Cluster) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func disk(version, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/" + version, "kind": "Disk", "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

func TestConversionByURL(t *testing.T) {
	t.Parallel()
	cluster, _ := startCluster(t, devcluster.Options{})
	client := dynamicClient(t, cluster)
	if err := define(t, client, fmt.Sprintf(convertedDefinition, conversionWebhook(t))); err != nil {
		t.Fatal(err)
	}
	of := func(version string) dynamic.ResourceInterface {
		return client.Resource(schema.GroupVersionResource{Group: "example.org", Version: version, Resource: "disks"}).
			Namespace("default")
	}
	events, err := of("v1").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	five := disk("v2", "a", map[string]any{"capacity": "5Gi"})
	made, err := of("v2").Create(t.Context(), five, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	size := func(object *unstructured.Unstructured) int64 {
		value, _, _ := unstructured.NestedInt64(object.Object, "spec", "size")
		return value
	}
	event := <-events.ResultChan()
	if seen, ok := event.Object.(*unstructured.Unstructured); !ok || size(seen) != 5 {
		t.Errorf("the watch of v1 shows %v, want the converted size 5", event.Object)
	}
	if got, err := of("v1").Get(t.Context(), "a", metav1.GetOptions{}); err != nil || size(got) != 5 ||
		got.GetUID() != made.GetUID() {
		t.Errorf("the object in v1 is %v (%v), want the converted size 5", got, err)
	}
	if list, err := of("v1").List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 ||
		size(&list.Items[0]) != 5 {
		t.Errorf("the list in v1 is %v (%v), want the converted size 5", list, err)
	}
	_ = unstructured.SetNestedField(made.Object, "6Gi", "spec", "capacity")
	if made, err = of("v2").Update(t.Context(), made, metav1.UpdateOptions{}); err != nil || made.GetGeneration() != 2 {
		t.Fatalf("an update in v2 must increase the generation: got %v (%v)", made, err)
	}
	if again, err := of("v2").Update(t.Context(), made, metav1.UpdateOptions{}); err != nil ||
		again.GetResourceVersion() != made.GetResourceVersion() {
		t.Errorf("an update without a change must keep the version: got %v (%v)", again, err)
	}
	_, err = of("v2").Create(t.Context(), disk("v2", "b", map[string]any{"capacity": "much"}), metav1.CreateOptions{})
	requireError(t, "a conversion that the webhook refuses fails the creation", err, "the capacity much is not in Gi")
	if list, err := of("v1").List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Errorf("the refused object must not be stored: %v (%v)", list, err)
	}
}

func TestConversionByService(t *testing.T) {
	t.Parallel()
	cluster, _ := startCluster(t, devcluster.Options{})
	client := dynamicClient(t, cluster)
	err := define(t, client, fmt.Sprintf(convertedDefinition, `{strategy: Webhook, webhook: {
      conversionReviewVersions: [v1], clientConfig: {service: {name: x, namespace: default}}}}`))
	if err == nil {
		_, err = client.Resource(schema.GroupVersionResource{Group: "example.org", Version: "v2", Resource: "disks"}).
			Namespace("default").Create(t.Context(), disk("v2", "a", nil), metav1.CreateOptions{})
	}
	requireError(t, "a conversion webhook of a service fails with a hint", err, "clientConfig.url")
}

// TestEquivalentVersions shows that a webhook for one version of a resource is called for the others as well, unless
// its matchPolicy is Exact.
func TestEquivalentVersions(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, conversion string
		policy             *admissionregistrationv1.MatchPolicyType
		want               []string
	}{
		"Converted": {"a webhook for v1 gets the converted object",
			"Webhook", nil, []string{"/size Disk.example.org/v1"}},
		"Renamed": {"without conversion, a webhook for v1 gets the object renamed",
			"None", nil, []string{"/none Disk.example.org/v1"}},
		"Exact": {"with Exact, a webhook for another version is not called",
			"None", ptr.To(admissionregistrationv1.Exact), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			webhooks := serveWebhooks(t, map[string]string{"/size": `[{"op":"add","path":"/spec/size","value":9}]`})
			cluster, _ := startCluster(t, devcluster.Options{})
			conversion, path := "{strategy: None}", "/none"
			if tc.conversion == "Webhook" {
				conversion, path = conversionWebhook(t), "/size"
			}
			client := dynamicClient(t, cluster)
			if err := define(t, client, fmt.Sprintf(convertedDefinition, conversion)); err != nil {
				t.Fatal(err)
			}
			rules := rulesForConfigMaps()
			rules[0].Rule = admissionregistrationv1.Rule{
				APIGroups: []string{"example.org"}, APIVersions: []string{"v1"}, Resources: []string{"disks"},
			}
			_, err := clientOf(t, cluster).AdmissionregistrationV1().MutatingWebhookConfigurations().Create(
				t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
					ObjectMeta: metav1.ObjectMeta{Name: "hooks"}, Webhooks: []admissionregistrationv1.MutatingWebhook{{
						Name: "hook.example.org", Rules: rules, ClientConfig: webhooks.at(path), MatchPolicy: tc.policy,
						SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
						AdmissionReviewVersions: []string{"v1"},
					}},
				}, metav1.CreateOptions{},
			)
			if err != nil {
				t.Fatal(err)
			}
			made, err := client.Resource(schema.GroupVersionResource{
				Group: "example.org", Version: "v2", Resource: "disks",
			}).Namespace("default").Create(
				t.Context(), disk("v2", "a", map[string]any{"capacity": "5Gi"}), metav1.CreateOptions{},
			)
			if err != nil {
				t.Fatal(err)
			}
			if calls := webhooks.recorded(); !slices.Equal(calls, tc.want) {
				t.Errorf("%s: called %v, want %v", tc.reason, calls, tc.want)
			}
			got, _, _ := unstructured.NestedString(made.Object, "spec", "capacity")
			if path == "/size" && got != "9Gi" {
				t.Errorf("%s: the capacity is %s, want the 9Gi of the webhook", tc.reason, got)
			}
		})
	}
}
