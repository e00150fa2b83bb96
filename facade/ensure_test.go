package kopf_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEnsureWritesNoMoreThanNeeded shows the requests for the creation of a house, and that nothing is written
// without changes.
func TestEnsureWritesNoMoreThanNeeded(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		way, stop := h.runEnsure()
		h.createHouseAndWait("a=1", "b=2", "c=3")
		want := []string{
			"patch houses", "patch configmaps", "patch configmaps", "patch configmaps", "patch houses",
		}
		if d := cmp.Diff(want, writes(way)); d != "" {
			t.Errorf("writes at the creation: -want, +got:\n%s", d)
		}
		stop()
		before := map[string]string{"house": h.house().GetResourceVersion()}
		for _, name := range []string{"a", "b", "c"} {
			before[name] = h.room("default", name).GetResourceVersion()
		}

		way, stop = h.runEnsure() // calls the handler to resume
		h.settle()
		after := map[string]string{"house": h.house().GetResourceVersion()}
		for _, name := range []string{"a", "b", "c"} {
			after[name] = h.room("default", name).GetResourceVersion()
		}
		if d := cmp.Diff(before, after); d != "" {
			t.Errorf("a restart writes nothing: resource versions, -before, +after:\n%s", d)
		}
		want = []string{"patch configmaps", "patch configmaps", "patch configmaps"}
		reads := 0
		for _, r := range way.Requests() {
			if r.Verb == "get" && r.Resource.Plural == "configmaps" {
				reads++
			}
		}
		if d := cmp.Diff(want, writes(way)); d != "" || reads != 3 {
			t.Errorf("after a restart, each child is checked once, with %d reads: -want, +got:\n%s", reads, d)
		}
		h.api.Edit(houses, "default", "home", func(house map[string]any) {
			house["spec"].(map[string]any)["note"] = "no child is different"
		})
		h.settle()
		for _, r := range way.Requests() {
			if r.Verb == "get" && r.Resource.Plural == "configmaps" {
				t.Errorf("a child is read once per process: got %s", r.Path)
			}
		}
		if d := cmp.Diff(append(want, "patch houses"), writes(way)); d != "" {
			t.Errorf("writes for a change that changes no child: -want, +got:\n%s", d)
		}
		stop()
	})
}

// TestEnsureAddsChangesAndPrunes shows that Ensure creates, updates and deletes children.
func TestEnsureAddsChangesAndPrunes(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		_, stop := h.runEnsure()
		defer stop()
		h.createHouseAndWait("a=1", "b=2")
		uid := h.house().GetUID()
		a := h.room("default", "a")
		if a == nil || h.owner("default", "b") != uid {
			t.Fatalf("the children are created and owned: got %v, %v", a, h.room("default", "b"))
		}
		labels := map[string]string{"street": "high", "test.example.org/parent-uid": string(uid)}
		if d := cmp.Diff(labels, a.GetLabels()); d != "" {
			t.Errorf("labels: -want, +got:\n%s", d)
		}
		h.changeRooms("a=9", "c=3")
		value, _, _ := nested(h.room("default", "a"), "data", "value")
		if value != "9" || h.owner("default", "b") != "" || h.owner("default", "c") != uid {
			t.Errorf("a child is changed, one pruned and one added: a is %q, owners of b and c %q and %q",
				value, h.owner("default", "b"), h.owner("default", "c"))
		}
		h.changeRooms()
		if h.room("default", "a") != nil || h.room("default", "c") != nil ||
			h.house().GetAnnotations()[houseRecord] != "" {
			t.Errorf("no child and no record is left: got %v", h.house().GetAnnotations())
		}
	})
}
