package kopf_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// With its first apply of a child, the operator takes over the fields of a former program, and removes the fields that
// are not declared any more. Other field managers keep their fields.
func TestEnsureTakesOverFieldsOfFormerManagers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	const python, ours = "python-operator", "test.example.org"
	cases := map[string]struct {
		reason string
		former func(h household)
		given  kopf.ExecutionSettings
		want   map[string]string // the data; the handler declares only "value"
	}{
		"another program": {
			"it has created the child, and updated it later",
			func(h household) {
				h.putChild(python, map[string]string{"value": "0", "b": "2"})
				h.patchRoom(python, `{"data":{"c":"3"}}`)
			},
			kopf.ExecutionSettings{}, map[string]string{"value": "1"},
		},
		"by hand": {
			"the handler has created the child itself, before it had Ensure",
			func(h household) { h.putChild(ours, map[string]string{"value": "1", "b": "2"}) },
			kopf.ExecutionSettings{}, map[string]string{"value": "1"},
		},
		"by label": {
			"a program has given it the label alone",
			func(h household) { h.putLabelled(python, map[string]string{"b": "2"}) },
			kopf.ExecutionSettings{}, map[string]string{"value": "1"},
		},
		"renamed": {
			"this operator had another name, and server-side apply is a conflict otherwise",
			func(h household) { h.runFormerly("before.example.org", map[string]any{"value": "0", "b": "2"}) },
			kopf.ExecutionSettings{}, map[string]string{"value": "1"},
		},
		"renamed, edited": {
			"edited fields are set back if declared, and stay otherwise",
			func(h household) {
				h.runFormerly("before.example.org", map[string]any{"value": "0", "b": "2", "c": "3"})
				h.patchRoom("kubectl-edit", `{"data":{"value":"edited","c":"edited","note":"theirs"}}`)
			},
			kopf.ExecutionSettings{}, map[string]string{"value": "1", "c": "edited", "note": "theirs"},
		},
		"stripped": {
			"without managedFields, all fields of a child are taken over",
			func(h household) {
				h.putChild(python, map[string]string{"value": "0", "b": "2"})
				h.patchRoom("kubectl-edit", `{"metadata":{"managedFields":[{}]},"data":{"c":"edited"}}`)
			},
			kopf.ExecutionSettings{}, map[string]string{"value": "1"},
		},
		"renamed, stripped": {
			"without managedFields, the fields of a former operator are taken over as well",
			func(h household) {
				h.runFormerly("before.example.org", map[string]any{"value": "0", "b": "2"})
				h.patchRoom("kubectl-edit", `{"metadata":{"managedFields":[{}]}}`)
				h.patchRoom("kubectl-edit", `{"data":{"value":"edited"}}`)
			},
			kopf.ExecutionSettings{}, map[string]string{"value": "1"},
		},
		"others": {
			"an autoscaler has set a field, which is its own",
			func(h household) {
				h.putChild(python, map[string]string{"value": "0", "b": "2"})
				h.patchRoom("autoscaler", `{"data":{"size":"7"}}`)
			},
			kopf.ExecutionSettings{}, map[string]string{"value": "1", "size": "7"},
		},
		"our own additions": {
			"what a handler writes beside Ensure stays after a restart",
			func(h household) {
				h.runFormerly(ours, map[string]any{"value": "1"})
				h.patchRoom(ours, `{"data":{"beside":"1"}}`)
			},
			kopf.ExecutionSettings{}, map[string]string{"value": "1", "beside": "1"},
		},
		"named": {
			"the setting says that the manager is a former one",
			func(h household) {
				h.putChild(python, map[string]string{"value": "0"})
				h.patchRoom("helper", `{"data":{"size":"7"}}`)
				h.patchRoom("autoscaler", `{"data":{"other":"7"}}`)
			},
			kopf.ExecutionSettings{FormerManagers: []string{"helper"}}, map[string]string{"value": "1", "other": "7"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inHousehold(t, func(h household) {
				h.begin() // no operator runs yet
				tc.former(h)
				heard := &complaints{}
				start := func() func() {
					_, stop := h.runWith(kopf.Settings{Execution: tc.given}, func(s houseSel) {
						s.On("ensure", always, func(ctx context.Context, c *houseChange) error {
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
					t.Error("the next start writes the child again")
				}
			})
		})
	}
}

// putChild makes a config map with an owner reference to the house, as another program does.
func (h household) putChild(manager string, data map[string]string) {
	h.t.Helper()
	h.putBy(manager, data, func(child *kopf.Unstructured) {
		owner := map[string]any{
			"apiVersion": "test.example.org/v1", "kind": "House", "name": "home", "uid": string(h.house().GetUID()),
			"controller": true, // and nothing of blockOwnerDeletion, which Ensure declares
		}
		child.Object["metadata"].(map[string]any)["ownerReferences"] = []any{owner}
	})
}

// putLabelled makes a config map with the operator's label.
func (h household) putLabelled(manager string, data map[string]string) {
	h.t.Helper()
	h.putBy(manager, data, func(child *kopf.Unstructured) {
		child.SetLabels(map[string]string{"test.example.org/parent-uid": string(h.house().GetUID())})
	})
}

func (h household) putBy(manager string, data map[string]string, mark func(child *kopf.Unstructured)) {
	h.t.Helper()
	child := rooms(house("default/a"))[0].(*kopf.Unstructured)
	mark(child)
	_ = unstructured.SetNestedStringMap(child.Object, data, "data")
	if err := h.people.Create(h.t.Context(), child, client.FieldOwner(manager)); err != nil {
		h.t.Fatal(err)
	}
}

// patchRoom changes the child as a field manager.
func (h household) patchRoom(manager, patch string) {
	h.t.Helper()
	child := rooms(house("default/a"))[0].(*kopf.Unstructured)
	raw := client.RawPatch("application/merge-patch+json", []byte(patch))
	if err := h.people.Patch(h.t.Context(), child, raw, client.FieldOwner(manager)); err != nil {
		h.t.Fatal(err)
	}
}

// runFormerly runs an operator of this name, which declares the child.
func (h household) runFormerly(name string, data map[string]any) {
	h.t.Helper()
	op := kopf.New(name)
	kopf.ForResource(op, "test.example.org/v1", "houses").On("ensure", always,
		func(ctx context.Context, c *houseChange) error {
			child := rooms(house("a"))[0].(*kopf.Unstructured)
			child.Object["data"] = data
			return c.Ensure(ctx, child)
		})
	stop := embed(h.t, h.api.Connect(), op)
	h.settle()
	h.stop(stop)
}
