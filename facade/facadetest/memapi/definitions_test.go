package memapi_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

func TestUnsupportedDefinitions(t *testing.T) {
	const frame = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: toys.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Toy, plural: toys}
`
	version := func(schema string) string {
		return "  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: " + schema + "}}\n"
	}
	cases := map[string]struct{ reason, rest, want string }{
		"Rules": {
			reason: "a definition with CEL rules is refused",
			rest: version(`{type: object, properties: {spec: {type: object, x-kubernetes-validations: [` +
				`{rule: "self.a > 1"}], properties: {a: {type: integer}}}}}`),
			want: "x-kubernetes-validations (CEL): ignore them with Server.IgnoreRules",
		},
		"Conversion": {
			reason: "a definition with a conversion webhook is refused",
			rest:   version(`{type: object}`) + "  conversion: {strategy: Webhook}\n", want: "conversion webhooks",
		},
		"NotStructural": {
			reason: "a schema with a field without a type is refused",
			rest:   version(`{type: object, properties: {spec: {}}}`),
			want:   "spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Required value",
		},
		"NoStorage": {
			reason: "a definition without a storage version is refused",
			rest:   strings.Replace(version(`{type: object}`), "storage: true", "storage: false", 1),
			want:   "must have exactly one version marked as storage version",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict([]byte(frame+tc.rest), crd); err != nil {
				t.Fatal(err)
			}
			server := memapi.New()
			err := server.Define(crd)
			if err == nil || !strings.Contains(err.Error(), tc.want) ||
				!strings.Contains(err.Error(), "defining toys.example.org") {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
			server.IgnoreRules()
			if err := server.Define(crd); (err == nil) != (name == "Rules") {
				t.Errorf("IgnoreRules must permit rules and nothing else: %s: got %v", tc.reason, err)
			}
		})
	}
}

func TestDefinitions(t *testing.T) {
	cases := map[string]struct {
		reason, path string
		want         int
		wantError    string
	}{
		"File":    {reason: "a file with several definitions is read completely", path: "testdata/crds.yaml", want: 3},
		"Folder":  {reason: "all files of a folder are read", path: "testdata", want: 3},
		"Missing": {reason: "a missing file is an error", path: "testdata/none.yaml", wantError: "testdata/none.yaml"},
		"Other":   {reason: "a file without definitions is an error", path: "doc.go", wantError: "doc.go"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := memapi.Definitions(tc.path)
			if len(got) != tc.want || (err == nil) != (tc.wantError == "") {
				t.Errorf("%s: got %d and %v, want %d", tc.reason, len(got), err, tc.want)
			}
			if err != nil && !strings.Contains(err.Error(), tc.wantError) {
				t.Errorf("%s: the error %v does not name %q", tc.reason, err, tc.wantError)
			}
		})
	}
}

// serveToys serves a kind with three versions.
func serveToys(t *testing.T) *discovery.DiscoveryClient {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: toys.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Toy, plural: toys}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v2alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
`), crd); err != nil {
		t.Fatal(err)
	}
	server := memapi.New()
	if err := server.Define(crd); err != nil {
		t.Fatal(err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(memapi.Config(server))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestStrategicMergeOfDefinition shows a strategic merge patch of a definition, as kubectl apply sends it.
func TestStrategicMergeOfDefinition(t *testing.T) {
	answer, err := serveToys(t).RESTClient().Patch(types.StrategicMergePatchType).
		AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/toys.example.org").
		Body([]byte(`{"metadata":{"labels":{"changed":"yes"}},"spec":{"names":{"shortNames":["ty"]}}}`)).
		DoRaw(t.Context())
	if err != nil || !strings.Contains(string(answer), `"changed":"yes"`) {
		t.Fatalf("the definition must have the label: %v\n%s", err, answer)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(answer, &crd); err != nil {
		t.Fatal(err)
	}
	if names := crd.Spec.Names; names.Kind != "Toy" || len(names.ShortNames) != 1 || len(crd.Spec.Versions) != 3 {
		t.Errorf("the definition must keep its other fields, got %v", crd.Spec)
	}
}

// TestPreferredVersion shows that the highest version is preferred, whatever the order in the definition, as by the
// real server.
func TestPreferredVersion(t *testing.T) {
	client := serveToys(t)
	groups, err := client.ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, group := range groups.Groups {
		if group.Name == "example.org" {
			got = append(got, group.PreferredVersion.Version)
			for _, version := range group.Versions {
				got = append(got, version.Version)
			}
		}
	}
	if d := cmp.Diff([]string{"v2", "v2", "v1", "v2alpha1"}, got); d != "" {
		t.Errorf("the preferred version and all versions: -want, +got:\n%s", d)
	}
}

// TestApplyOfDefinition shows a server-side apply of a definition, as kubectl apply --server-side sends it, also in a
// program that has added the kind to the scheme of client-go.
func TestApplyOfDefinition(t *testing.T) {
	if err := apiextensionsv1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	client := serveToys(t).RESTClient()
	apply := func() *apiextensionsv1.CustomResourceDefinition {
		answer, err := client.Patch(types.ApplyPatchType).Param("fieldManager", "kubectl").
			AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/games.example.org").
			Body([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
				"spec":{"group":"example.org","scope":"Cluster","names":{"kind":"Game","plural":"games"},"versions":[
				{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)).
			DoRaw(t.Context())
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err != nil || yaml.Unmarshal(answer, crd) != nil {
			t.Fatalf("the definition must be applied: %v\n%s", err, answer)
		}
		return crd
	}
	first := apply()
	if again := apply(); again.ResourceVersion != first.ResourceVersion {
		t.Errorf("the second apply must not change anything: -first, +again:\n%s", cmp.Diff(first, again))
	}
	answer, err := client.Patch(types.ApplyPatchType).Param("fieldManager", "kubectl").
		AbsPath("/apis/example.org/v1/games/chess").
		Body([]byte(`{"apiVersion":"example.org/v1","kind":"Game"}`)).DoRaw(t.Context())
	if err != nil || strings.Contains(string(answer), `"namespace"`) {
		t.Errorf("an object of the new kind must be applied, without a namespace: %v\n%s", err, answer)
	}
}
