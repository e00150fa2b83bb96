package devcluster_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// recordingWebhooks serves /deny and one path for each JSON patch, and records the calls.
type recordingWebhooks struct {
	url       string
	authority []byte
	mu        sync.Mutex
	calls     []string // "path kind.version of the object"
	isDryRun  bool     // whether the last call was a dry run
}

func serveWebhooks(t *testing.T, patches map[string]string) *recordingWebhooks {
	t.Helper()
	w := &recordingWebhooks{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		var object metav1.TypeMeta
		if err := json.Unmarshal(review.Request.Object.Raw, &object); err != nil {
			t.Error(err)
		}
		w.mu.Lock()
		w.calls = append(w.calls, r.URL.Path+" "+object.Kind+"."+object.APIVersion)
		w.isDryRun = *review.Request.DryRun
		w.mu.Unlock()
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: r.URL.Path != "/deny"}
		if patch := patches[r.URL.Path]; patch != "" {
			review.Response.PatchType = ptr.To(admissionv1.PatchTypeJSONPatch)
			review.Response.Patch = []byte(patch)
		}
		if err := json.NewEncoder(to).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	w.authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return w
}

func (w *recordingWebhooks) at(path string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{URL: ptr.To(w.url + path), CABundle: w.authority}
}

func (w *recordingWebhooks) recorded() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

// validating returns a webhook for new config maps.
func validating(at admissionregistrationv1.WebhookClientConfig) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name: "hook.example.org", Rules: rulesForConfigMaps(), ClientConfig: at,
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
	}
}

func configure(t *testing.T, client kubernetes.Interface, hooks ...admissionregistrationv1.ValidatingWebhook) {
	t.Helper()
	_, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(
		t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "hooks"}, Webhooks: hooks,
		}, metav1.CreateOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
}

func createConfigMap(t *testing.T, client kubernetes.Interface, name string, dryRun ...string) error {
	t.Helper()
	_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"a": "b"},
	}, metav1.CreateOptions{DryRun: dryRun})
	return err
}

func requireError(t *testing.T, reason string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: got the error %v", reason, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: got %v, want %q", reason, err, want)
	}
}

func TestPoliciesOfWebhooks(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	webhooks := serveWebhooks(t, nil)
	service := admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "x"},
	}
	ignore := func(h *admissionregistrationv1.ValidatingWebhook) {
		h.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
	}
	condition := func(text string) func(*admissionregistrationv1.ValidatingWebhook) {
		return func(h *admissionregistrationv1.ValidatingWebhook) {
			h.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "c", Expression: text}}
		}
	}
	some := func(h *admissionregistrationv1.ValidatingWebhook) {
		h.SideEffects = ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun)
	}
	type change = func(*admissionregistrationv1.ValidatingWebhook)
	cases := map[string]struct {
		reason  string
		at      admissionregistrationv1.WebhookClientConfig
		changes []change
		dryRun  []string
		want    string
	}{
		"Denied": {"a webhook that denies refuses the request", webhooks.at("/deny"), nil, nil, "denied the request"},
		"Condition": {"a webhook is called if its condition holds", webhooks.at("/deny"),
			[]change{condition("object.data.a == 'b'")}, nil, "denied"},
		"OtherCondition": {"a webhook is not called if its condition does not hold", webhooks.at("/deny"),
			[]change{condition("object.data.a == 'c'")}, nil, ""},
		"RequestCondition": {"conditions can use the request", webhooks.at("/deny"),
			[]change{condition("request.operation == 'CREATE' && request.resource.resource == 'configmaps'")}, nil,
			"denied"},
		"UserCondition": {"conditions can use the authorizer, which allows everything",
			webhooks.at("/deny"), []change{condition(
				"authorizer.group('').resource('pods').namespace('default').check('delete').allowed()",
			)}, nil, "denied"},
		"FailingCondition": {"an error of a condition refuses the request", webhooks.at("/deny"),
			[]change{condition("object.data.none == 'c'")}, nil, "no such key: none"},
		"IgnoredCondition": {"the failure policy Ignore ignores an error of a condition", webhooks.at("/deny"),
			[]change{condition("object.data.none == 'c'"), ignore}, nil, ""},
		"Failed":  {"a webhook of a service fails with a hint", service, nil, nil, "set clientConfig.url"},
		"Ignored": {"the failure policy Ignore ignores a failed webhook", service, []change{ignore}, nil, ""},
		"DryRun": {"a dry run calls a webhook with side effects on other runs",
			webhooks.at("/deny"), []change{some}, []string{"All"}, "denied"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster, _ := startCluster(t, devcluster.Options{})
			client := clientOf(t, cluster)
			hook := validating(tc.at)
			for _, change := range tc.changes {
				change(&hook)
			}
			configure(t, client, hook)
			requireError(t, tc.reason, createConfigMap(t, client, "a", tc.dryRun...), tc.want)
			if len(tc.dryRun) > 0 && !webhooks.isDryRun {
				t.Error("the review of a dry run must have dryRun set")
			}
		})
	}
}

// TestReinvocation shows that a mutating webhook with reinvocationPolicy IfNeeded is called again if a later one
// changed the object.
func TestReinvocation(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		policy *admissionregistrationv1.ReinvocationPolicyType
		second string
		want   []string
	}{
		"IfNeeded": {"the first webhook is called again after a change by the second one",
			ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy), "/color", []string{"/size", "/color", "/size"}},
		"Unchanged": {"without a change by the second webhook, the first one is not called again",
			ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy), "/none", []string{"/size", "/none"}},
		"Never": {"by default, a webhook is called once", nil, "/color", []string{"/size", "/color"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			webhooks := serveWebhooks(t, map[string]string{
				"/size":  `[{"op":"add","path":"/data/size","value":"1"}]`,
				"/color": `[{"op":"add","path":"/data/c","value":"2"}]`,
			})
			cluster, _ := startCluster(t, devcluster.Options{})
			client := clientOf(t, cluster)
			hook := func(name, path string) admissionregistrationv1.MutatingWebhook {
				return admissionregistrationv1.MutatingWebhook{
					Name: name, Rules: rulesForConfigMaps(), ClientConfig: webhooks.at(path),
					SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
					AdmissionReviewVersions: []string{"v1"},
				}
			}
			first := hook("first.example.org", "/size")
			first.ReinvocationPolicy = tc.policy
			_, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(
				t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
					ObjectMeta: metav1.ObjectMeta{Name: "hooks"},
					Webhooks:   []admissionregistrationv1.MutatingWebhook{first, hook("second.example.org", tc.second)},
				}, metav1.CreateOptions{},
			)
			if err != nil {
				t.Fatal(err)
			}
			if err := createConfigMap(t, client, "a"); err != nil {
				t.Fatal(err)
			}
			var paths []string
			for _, call := range webhooks.recorded() {
				path, _, _ := strings.Cut(call, " ")
				paths = append(paths, path)
			}
			if !slices.Equal(paths, tc.want) {
				t.Errorf("%s: called %v, want %v", tc.reason, paths, tc.want)
			}
		})
	}
}
