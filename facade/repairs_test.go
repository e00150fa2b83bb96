package kopf_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// runRepairing is an operator that ensures rooms and has them watched.
func (h household) runRepairing() (drain func() []string, stop func()) {
	h.t.Helper()
	way, stop := h.run(func(s houseSel) {
		s.On("ensure", always, ensure)
		s.Owns(&corev1.ConfigMap{})
	})
	return func() []string { return writes(way) }, stop
}

func TestRepair(t *testing.T) {
	inHousehold(t, func(h household) {
		drain, stop := h.runRepairing()
		h.build("bath=1", "other/attic=1")
		drain()

		h.redecorate("default", "bath", "2")
		if got, _, _ := nested(h.room("default", "bath"), "data", "value"); got != "1" {
			t.Errorf("the edited child has %q, want what was declared", got)
		}
		before := h.room("default", "bath").GetUID()
		h.demolish("default", "bath")
		h.demolish("other", "attic")
		got := h.owner("default", "bath")
		if got != h.house().GetUID() || h.room("default", "bath").GetUID() == before {
			t.Errorf("the deleted child is not back: owner %q", got)
		}
		if h.room("other", "attic") == nil {
			t.Error("the deleted child elsewhere is not back")
		}
		want := []string{"patch configmaps", "patch configmaps", "patch configmaps"}
		if d := cmp.Diff(want, drain()); d != "" {
			t.Errorf("the writes: -want, +got:\n%s", d)
		}
		stop()
	})
}

// What others may do with a child is no drift, and costs one request that changes nothing.
func TestRepairLeavesOthersAlone(t *testing.T) {
	inHousehold(t, func(h household) {
		drain, stop := h.runRepairing()
		h.build("bath=1", "kitchen=1")
		drain()
		h.api.Edit(settings, "default", "bath", func(room map[string]any) { room["status"] = map[string]any{"a": "b"} })
		h.settle()
		if got := drain(); len(got) > 0 {
			t.Errorf("a status is nobody's drift: %v", got)
		}
		h.api.Edit(settings, "default", "bath", func(room map[string]any) {
			room["data"].(map[string]any)["foreign"] = "stays"
		})
		h.settle()
		if got, _, _ := nested(h.room("default", "bath"), "data", "foreign"); got != "stays" {
			t.Error("the field of somebody else is gone")
		}
		if d := cmp.Diff([]string{"patch configmaps"}, drain()); d != "" {
			t.Errorf("the writes: -want, +got:\n%s", d)
		}

		h.rebuild("bath=1") // nobody declares the kitchen any more
		h.settle()
		if h.room("default", "kitchen") != nil {
			t.Error("what is not declared any more came back")
		}
		if err := h.people.Delete(t.Context(), h.house()); err != nil {
			t.Fatal(err)
		}
		h.settle()
		drain()
		h.demolish("default", "bath") // as the garbage collector does
		if h.room("default", "bath") != nil {
			t.Error("a child of a deleted parent came back")
		}
		stop()
	})
}

// Two who are equally stubborn do not run hot.
func TestRepairBacksOff(t *testing.T) {
	inHousehold(t, func(h household) {
		drain, stop := h.runRepairing()
		h.build("bath=1")
		drain()
		edits := 0
		for end := time.Now().Add(time.Hour); time.Now().Before(end); time.Sleep(time.Second) {
			if got, _, _ := nested(h.room("default", "bath"), "data", "value"); got == "1" {
				edits++
				h.api.Edit(settings, "default", "bath", func(room map[string]any) {
					room["data"] = map[string]any{"value": "2"}
				})
			}
		}
		if edits < 10 || edits > 30 {
			t.Errorf("%d repairs in an hour, want about 20: with delays that double up to 5 minutes", edits)
		}
		stop()
	})
}
