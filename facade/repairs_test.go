package kopf_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// runRepairing runs an operator that ensures rooms and watches them. Drain returns its writes since the last call.
func (h ensureFixture) runRepairing() (drain func() []string, stop func()) {
	h.t.Helper()
	way, stop := h.run(func(s houseSel) {
		s.On("ensure", nonDeleteReasons, ensure)
		s.Owns(&corev1.ConfigMap{})
	})
	return func() []string { return writes(way) }, stop
}

// TestRepairLeavesOthersAlone shows that changes of undeclared fields by other clients are not drift, and cost at most
// one request, which changes nothing.
func TestRepairLeavesOthersAlone(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		drain, stop := h.runRepairing()
		h.createHouseAndWait("bath=1", "kitchen=1")
		drain()
		h.api.Edit(settings, "default", "bath", func(room map[string]any) { room["status"] = map[string]any{"a": "b"} })
		h.settle()
		if got := drain(); len(got) > 0 {
			t.Errorf("a change of the status must not be repaired: %v", got)
		}
		h.api.Edit(settings, "default", "bath", func(room map[string]any) {
			room["data"].(map[string]any)["foreign"] = "stays"
		})
		h.settle()
		if got, _, _ := nested(h.room("default", "bath"), "data", "foreign"); got != "stays" {
			t.Error("the field of another client must stay")
		}
		if d := cmp.Diff([]string{"patch configmaps"}, drain()); d != "" {
			t.Errorf("the writes: -want, +got:\n%s", d)
		}

		h.changeRooms("bath=1") // the kitchen is not declared any more
		h.settle()
		if h.room("default", "kitchen") != nil {
			t.Error("a child that is not declared any more must not be restored")
		}
		if err := h.directClient.Delete(t.Context(), h.house()); err != nil {
			t.Fatal(err)
		}
		h.settle()
		drain()
		h.deleteRoom("default", "bath") // as the garbage collector does
		if h.room("default", "bath") != nil {
			t.Error("a child of a deleted parent must not be restored")
		}
		stop()
	})
}
