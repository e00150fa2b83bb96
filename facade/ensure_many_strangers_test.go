package kopf_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// forgeMany adds thousands of children to the record and changes the rooms of the house.
func (h ensureFixture) forgeMany(child func(i int) string, rooms ...any) {
	h.t.Helper()
	h.api.Edit(houses, "default", "home", func(house map[string]any) {
		one := &unstructured.Unstructured{Object: house}
		annotations, children := one.GetAnnotations(), map[string]any{}
		record := map[string]any{"parent": string(one.GetUID()), "children": children}
		if err := json.Unmarshal([]byte(annotations[houseRecord]), &record); err != nil {
			h.t.Error(err)
		}
		children, _ = record["children"].(map[string]any)
		for i := range 3000 {
			children[child(i)] = ""
		}
		text, err := json.Marshal(record)
		if err != nil {
			h.t.Error(err)
		}
		annotations[houseRecord] = string(text)
		one.SetAnnotations(annotations)
		house["spec"] = map[string]any{"rooms": rooms}
	})
}

// TestEnsureForgedRecord shows that an edit with a forged record of thousands of children, which every client with
// the right to annotate can write, takes at most three requests. The real children of the record are still pruned,
// also after a restart.
func TestEnsureForgedRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	for name, child := range map[string]func(i int) string{
		"OneNamespace":   func(i int) string { return fmt.Sprintf("v1/ConfigMap/default/c%d", i) },
		"ManyNamespaces": func(i int) string { return fmt.Sprintf("v1/ConfigMap/n%d/c", i) },
	} {
		t.Run(name, func(t *testing.T) {
			withEnsureFixture(t, func(h ensureFixture) {
				_, stop := h.runEnsure()
				h.createHouseAndWait("a=1", "b=1", "yard/d=1")
				stop()
				way, stop := h.runEnsure()
				h.settle()
				way.DrainRequests()
				h.forgeMany(child, "a=2", "b=1", "yard/d=1")
				h.settle()
				count := 0
				for _, r := range way.DrainRequests() {
					isApply := r.Verb == "patch" && r.Resource.Plural == "configmaps"
					if r.Verb != "watch" && r.Resource.Plural != "events" && !isApply {
						count++
					}
				}
				if count > 3 {
					t.Errorf("the edit takes at most 3 requests: got %d", count)
				}
				if record := h.house().GetAnnotations()[houseRecord]; len(record) > 1000 {
					t.Errorf("the forged children are removed from the record: got %d bytes", len(record))
				}
				stop()
				h.forgeMany(child, "a=1")
				_, stop = h.runEnsure()
				h.settle()
				h.requireRooms("undeclared children are deleted", "default/a")
				stop()
			})
		})
	}
}
