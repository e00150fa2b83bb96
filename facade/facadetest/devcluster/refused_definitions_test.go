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

// plainDefinition is a valid definition. The cases replace parts of it.
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
		"Valid": {"a valid definition is accepted", "", "", ""},
		"Structural": {"a field without a type is refused", spec,
			"{properties: {size: {type: integer}}}", "must not be empty"},
		"UnknownName": {"a rule that does not compile is refused", spec, rule("self.none > 1"),
			"compilation failed: ERROR: <input>:1:5: undefined field 'none'"},
		"NotBoolean": {"a rule that is not boolean is refused", spec, rule("self.size + 1"),
			"cel expression must evaluate to a bool"},
		"Costly": {"a rule that may cost too much is refused", spec,
			`{type: object, properties: {all: {type: array, items: {type: array, items: {type: string}}, ` +
				`x-kubernetes-validations: [{rule: "self.all(a, self.all(b, a.all(c, b.all(d, c == d))))"}]}}}`,
			"exceeds budget by factor of"},
		"Name": {"a name without the group is refused", "boxes.example.org", "crates.example.org",
			`must be spec.names.plural+"."+spec.group`},
		"Scope": {"an unknown scope is refused", "scope: Namespaced", "scope: Galaxy",
			`supported values: "Cluster", "Namespaced"`},
		"NoScope": {"a missing scope is refused", "scope: Namespaced", "", "spec.scope: Required value"},
		"NoSchema": {"a version without a schema is refused", "openAPIV3Schema:", "none:",
			"spec.versions[0].schema.openAPIV3Schema: Required value"},
		"NoStorage": {"a definition without a storage version is refused", "storage: true", "storage: false",
			"must have exactly one version marked as storage version"},
		"BadDefault": {"a default that breaks the schema is refused", spec,
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
					t.Fatalf("the case replaces %q, which the definition does not contain", tc.replaced)
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
			t.Errorf("the default of %v is %q, want %q", path, got, want)
		}
	}
	_, err = crds.Patch(t.Context(), "boxes.example.org", types.MergePatchType, []byte(`{"spec":{"scope":"Cluster"}}`),
		metav1.PatchOptions{})
	requireError(t, "a change of the scope is refused",
		err, "spec.scope: Invalid value: \"Cluster\": field is immutable")
}
