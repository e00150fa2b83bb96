package kopf_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestEnsureTakesOverFieldsOfFormerManagers shows that the first apply of a child takes over the fields of a former
// program and removes those that are not declared. Other field managers keep their fields.
func TestEnsureTakesOverFieldsOfFormerManagers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	const python, ours = "python-operator", "test.example.org"
	cases := map[string]struct {
		reason   string
		former   func(h ensureFixture)
		settings kopf.ExecutionSettings
		want     map[string]string // the data; the handler declares only "value"
	}{
		"another program": {
			"the fields of the program that created the child are taken over",
			func(h ensureFixture) {
				h.putChild(python, map[string]string{"value": "0", "b": "2"})
				h.patchRoom(python, `{"data":{"c":"3"}}`)
			},
			kopf.ExecutionSettings{}, map[string]string{"value": "1"},
		},
		"by hand": {
			"fields that the handler wrote before it used Ensure are taken over",
			func(h ensureFixture) { h.putChild(ours, map[string]string{"value": "1", "b": "2"}) },
			kopf.ExecutionSettings{}, map[string]string{"value": "1"},
		},
		"by label": {
			"the fields of a program that set only the label are taken over",
			func(h ensureFixture) { h.putLabelled(python, map[string]string{"b": "2"}) },
			kopf.ExecutionSettings{}, map[string]string{"value": "1"},
		},
		"renamed": {
			"the fields of this operator's former name are taken over without a conflict",
			func(h ensureFixture) {
				h.runAsFormerOperator("before.example.org", map[string]any{"value": "0", "b": "2"})
			},
			kopf.ExecutionSettings{}, map[string]string{"value": "1"},
		},
		"renamed, edited": {
			"edited fields are restored if declared, and kept otherwise",
			func(h ensureFixture) {
				h.runAsFormerOperator("before.example.org", map[string]any{"value": "0", "b": "2", "c": "3"})
				h.patchRoom("kubectl-edit", `{"data":{"value":"edited","c":"edited","note":"theirs"}}`)
			},
			kopf.ExecutionSettings{}, map[string]string{"value": "1", "c": "edited", "note": "theirs"},
		},
		"stripped": {
			"without managedFields, all fields of a child are taken over",
			func(h ensureFixture) {
				h.putChild(python, map[string]string{"value": "0", "b": "2"})
				h.patchRoom("kubectl-edit", `{"metadata":{"managedFields":[{}]},"data":{"c":"edited"}}`)
			},
			kopf.ExecutionSettings{}, map[string]string{"value": "1"},
		},
		"renamed, stripped": {
			"without managedFields, the fields of a former operator are taken over as well",
			func(h ensureFixture) {
				h.runAsFormerOperator("before.example.org", map[string]any{"value": "0", "b": "2"})
				h.patchRoom("kubectl-edit", `{"metadata":{"managedFields":[{}]}}`)
				h.patchRoom("kubectl-edit", `{"data":{"value":"edited"}}`)
			},
			kopf.ExecutionSettings{}, map[string]string{"value": "1"},
		},
		"others": {
			"a field that an autoscaler has set is kept",
			func(h ensureFixture) {
				h.putChild(python, map[string]string{"value": "0", "b": "2"})
				h.patchRoom("autoscaler", `{"data":{"size":"7"}}`)
			},
			kopf.ExecutionSettings{}, map[string]string{"value": "1", "size": "7"},
		},
		"our own additions": {
			"fields that a handler writes without Ensure are kept after a restart",
			func(h ensureFixture) {
				h.runAsFormerOperator(ours, map[string]any{"value": "1"})
				h.patchRoom(ours, `{"data":{"beside":"1"}}`)
			},
			kopf.ExecutionSettings{}, map[string]string{"value": "1", "beside": "1"},
		},
		"named": {
			"the fields of a manager listed in FormerManagers are taken over",
			func(h ensureFixture) {
				h.putChild(python, map[string]string{"value": "0"})
				h.patchRoom("helper", `{"data":{"size":"7"}}`)
				h.patchRoom("autoscaler", `{"data":{"other":"7"}}`)
			},
			kopf.ExecutionSettings{FormerManagers: []string{"helper"}}, map[string]string{"value": "1", "other": "7"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			withEnsureFixture(t, func(h ensureFixture) {
				h.createHouse() // no operator runs yet
				tc.former(h)
				heard := &ensureErrors{}
				start := func() func() {
					_, stop := h.runWith(kopf.Settings{Execution: tc.settings}, func(s houseSel) {
						s.On("ensure", nonDeleteReasons, func(ctx context.Context, c *houseChange) error {
							return heard.note(c.Ensure(ctx, rooms(house("a=1"))...))
						})
					})
					h.settle()
					return stop
				}
				start()()
				got, _, _ := unstructured.NestedStringMap(h.room("default", "a").Object, "data")
				if d := cmp.Diff(tc.want, got); d != "" || heard.last() != nil {
					t.Errorf("%s: %v, -want, +got:\n%s", tc.reason, heard.last(), d)
				}
				version := h.room("default", "a").GetResourceVersion()
				labels := map[string]string{
					"street": "high", "test.example.org/parent-uid": string(h.house().GetUID()),
				}
				if d := cmp.Diff(labels, h.room("default", "a").GetLabels()); d != "" {
					t.Errorf("labels: -want, +got:\n%s", d)
				}
				start()()
				if h.room("default", "a").GetResourceVersion() != version {
					t.Error("the next start does not write the child")
				}
			})
		})
	}
}

// putChild creates a config map with an owner reference to the house, as another program does.
func (h ensureFixture) putChild(manager string, data map[string]string) {
	h.t.Helper()
	h.putBy(manager, data, func(child *kopf.Unstructured) {
		owner := map[string]any{
			"apiVersion": "test.example.org/v1", "kind": "House", "name": "home", "uid": string(h.house().GetUID()),
			"controller": true, // without blockOwnerDeletion, which Ensure declares
		}
		child.Object["metadata"].(map[string]any)["ownerReferences"] = []any{owner}
	})
}

// putLabelled creates a config map with the operator's label.
func (h ensureFixture) putLabelled(manager string, data map[string]string) {
	h.t.Helper()
	h.putBy(manager, data, func(child *kopf.Unstructured) {
		child.SetLabels(map[string]string{"test.example.org/parent-uid": string(h.house().GetUID())})
	})
}

func (h ensureFixture) putBy(manager string, data map[string]string, mark func(child *kopf.Unstructured)) {
	h.t.Helper()
	child := rooms(house("default/a"))[0].(*kopf.Unstructured)
	mark(child)
	_ = unstructured.SetNestedStringMap(child.Object, data, "data")
	if err := h.directClient.Create(h.t.Context(), child, client.FieldOwner(manager)); err != nil {
		h.t.Fatal(err)
	}
}

// patchRoom changes the child as a field manager.
func (h ensureFixture) patchRoom(manager, patch string) {
	h.t.Helper()
	child := rooms(house("default/a"))[0].(*kopf.Unstructured)
	raw := client.RawPatch("application/merge-patch+json", []byte(patch))
	if err := h.directClient.Patch(h.t.Context(), child, raw, client.FieldOwner(manager)); err != nil {
		h.t.Fatal(err)
	}
}

// runAsFormerOperator runs an operator with this name that declares the child.
func (h ensureFixture) runAsFormerOperator(name string, data map[string]any) {
	h.t.Helper()
	op := kopf.New(name)
	kopf.ForResource(op, "test.example.org/v1", "houses").On("ensure", nonDeleteReasons,
		func(ctx context.Context, c *houseChange) error {
			child := rooms(house("a"))[0].(*kopf.Unstructured)
			child.Object["data"] = data
			return c.Ensure(ctx, child)
		})
	stop := startInManager(h.t, h.api.Connect(), op)
	h.settle()
	h.stop(stop)
}
