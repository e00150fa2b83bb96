package kopf_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

// TestMutationsWithOddKeys shows that a mutation works next to keys and values that are difficult in JSON patches
// and Go types, and keeps all other values.
func TestMutationsWithOddKeys(t *testing.T) {
	const before = `{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"w1","namespace":"ns"},
		"spec":{"big":9007199254740993,"null":null,"list":[{"a/b":1},{"a~b":2}],"":"empty",
		"deep":{"x/y":{"z~":[1,2,3]},"a/b":"removed"}}}`
	const want = `{"big":9007199254740993,"null":null,"list":[{"a/b":1},{"a~b":2}],"":"empty",
		"deep":{"x/y":{"z~":[1,3]},"tilde~1slash/x":"1"},"new":{"k/k":"v"}}`
	object := &rawObject{}
	if err := object.UnmarshalJSON([]byte(before)); err != nil {
		t.Fatal(err)
	}
	got := facadetest.NewAdmission[*kopf.Unstructured](object).Mutate(t.Context(), func(
		_ context.Context, a *kopf.Admission[*kopf.Unstructured],
	) error {
		deep, _ := a.Object.Object["spec"].(map[string]any)["deep"].(map[string]any)
		delete(deep, "a/b")
		deep["tilde~1slash/x"] = "1"
		if err := kopf.SetField(a.Object, `spec.deep."x/y"."z~"`, []any{int64(1), int64(3)}); err != nil {
			return err
		}
		return kopf.SetField(a.Object, `spec.new."k/k"`, "v")
	})
	if !got.Allowed {
		t.Fatalf("the mutation is allowed: %s", got.Message)
	}
	wanted := map[string]any{}
	if err := utiljson.Unmarshal([]byte(want), &wanted); err != nil { // keeps large integers
		t.Fatal(err)
	}
	if d := cmp.Diff(any(wanted), got.Object.Object["spec"]); d != "" {
		t.Errorf("the patch keeps unchanged fields: -want, +got:\n%s", d)
	}
}

// TestMutationsOfTypedMappings shows that a mutation works on a map with difficult keys in a typed object, even if
// the map is nil.
func TestMutationsOfTypedMappings(t *testing.T) {
	const key = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	for name, tc := range map[string]struct{ before, want map[string]string }{
		"None": {nil, map[string]string{key: "true", "tilde~1slash/x": "1"}},
		"Others": {
			map[string]string{"o.io/a~b": "x", "a/b": "y"},
			map[string]string{"o.io/a~b": "x", key: "true", "tilde~1slash/x": "1"},
		},
		"Itself": {map[string]string{key: "false"}, map[string]string{key: "true", "tilde~1slash/x": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &Widget{}
			w.Namespace, w.Name, w.Spec.Extra = "ns", "w1", tc.before
			got := facadetest.NewAdmission(w).Mutate(t.Context(), func(_ context.Context, a *Admission) error {
				if a.Object.Spec.Extra == nil {
					a.Object.Spec.Extra = map[string]string{}
				}
				a.Object.Spec.Extra[key] = "true"
				a.Object.Spec.Extra["tilde~1slash/x"] = "1"
				delete(a.Object.Spec.Extra, "a/b")
				return nil
			})
			if d := cmp.Diff(tc.want, got.Object.Spec.Extra); d != "" || !got.Allowed {
				t.Errorf("allowed %t, -want, +got:\n%s", got.Allowed, d)
			}
		})
	}
}
