package devcluster_test

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// plainDefinition is valid; cases replace parts of it.
const plainDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Box, plural: boxes}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties: {spec: {type: object, properties: {size: {type: integer}}}}
`

func TestInvalidDefinitionsAreRefused(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	rule := func(text string) string {
		return `{type: object, x-kubernetes-validations: [{rule: "` + text + `"}], properties: {size: {type: integer}}}`
	}
	const spec = `{type: object, properties: {size: {type: integer}}}`
	cases := map[string]struct{ reason, replaced, by, want string }{
		"Valid":      {"it is valid", "", "", ""},
		"Structural": {"every field needs a type", spec, "{properties: {size: {type: integer}}}", "must not be empty"},
		"UnknownName": {"the rule does not compile", spec, rule("self.none > 1"),
			"compilation failed: ERROR: <input>:1:5: undefined field 'none'"},
		"NotBoolean": {"rules are conditions", spec, rule("self.size + 1"), "cel expression must evaluate to a bool"},
		"Costly": {"the rule may take too long", spec,
			`{type: object, properties: {all: {type: array, items: {type: array, items: {type: string}}, ` +
				`x-kubernetes-validations: [{rule: "self.all(a, self.all(b, a.all(c, b.all(d, c == d))))"}]}}}`,
			"exceeds budget by factor of"},
		"Name": {"the name has the group", "boxes.example.org", "crates.example.org",
			`must be spec.names.plural+"."+spec.group`},
		"Scope": {"there are two scopes", "scope: Namespaced", "scope: Galaxy",
			`supported values: "Cluster", "Namespaced"`},
		"NoScope": {"there is no default", "scope: Namespaced", "", "spec.scope: Required value"},
		"NoSchema": {"schemas are required", "openAPIV3Schema:", "none:",
			"spec.versions[0].schema.openAPIV3Schema: Required value"},
		"NoStorage": {"one version is stored", "storage: true", "storage: false",
			"must have exactly one version marked as storage version"},
		"BadDefault": {"defaults must be valid", spec,
			`{type: object, properties: {size: {type: integer, default: x}}}`,
			"in body must be of type integer"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster, _ := startCluster(t, devcluster.Options{})
			text := plainDefinition
			if tc.replaced != "" {
				text = strings.Replace(text, tc.replaced, tc.by, 1)
				if text == plainDefinition {
					t.Fatalf("%q is not a part of the definition", tc.replaced)
				}
			}
			requireError(t, tc.reason, define(t, dynamicClient(t, cluster), text), tc.want)
		})
	}
}

func TestDefinitionsGetDefaults(t *testing.T) {
	t.Parallel()
	cluster, _ := startCluster(t, devcluster.Options{})
	client := dynamicClient(t, cluster)
	if err := define(t, client, plainDefinition); err != nil {
		t.Fatal(err)
	}
	crds := client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	crd, err := crds.Get(t.Context(), "boxes.example.org", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for want, path := range map[string][]string{
		"box": {"spec", "names", "singular"}, "BoxList": {"spec", "names", "listKind"},
		"None": {"spec", "conversion", "strategy"},
	} {
		if got, _, _ := unstructured.NestedString(crd.Object, path...); got != want {
			t.Errorf("%v is %q, want %q", path, got, want)
		}
	}
	_, err = crds.Patch(t.Context(), "boxes.example.org", types.MergePatchType, []byte(`{"spec":{"scope":"Cluster"}}`),
		metav1.PatchOptions{})
	requireError(t, "the scope stays", err, "spec.scope: Invalid value: \"Cluster\": field is immutable")
}
