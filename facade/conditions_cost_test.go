package kopf_test

import (
	"context"
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestConditionsFigures logs and checks how much conditions add to the cost of children (see TestEnsureFigures):
// one write of the status for each parent that is created, and nothing at a restart.
func TestConditionsFigures(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	parents := 10
	if asked := os.Getenv("ENSURE_PARENTS"); asked != "" {
		var err error
		if parents, err = strconv.Atoi(asked); err != nil {
			t.Fatal(err)
		}
	}
	created := map[string]float64{
		"get configmaps": 3, "patch configmaps": 3, "patch houses": 2, "patch houses/status": 1,
	}
	withFinalizer := map[string]float64{
		"get configmaps": 3, "patch configmaps": 3, "patch houses": 3, "patch houses/status": 1,
	}
	for name, c := range map[string]struct {
		reason                           string
		register                         func(s houseSel)
		wantOnCreation, wantAfterRestart map[string]float64
	}{
		"resumed": {"a restart checks each child once and writes no conditions", func(s houseSel) {
			s.On("ensure", kopf.CreateUpdateResume(), ensure)
		}, created, map[string]float64{"get configmaps": 3, "patch configmaps": 3}},
		"idle": {"a restart without resume handlers sends no requests", func(s houseSel) {
			s.On("ensure", []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate}, ensure)
			s.OnDelete("leave", func(context.Context, *kopf.Change[*kopf.Unstructured]) error { return nil })
		}, withFinalizer, map[string]float64{}},
	} {
		t.Run(name, func(t *testing.T) {
			withEnsureFixture(t, func(h ensureFixture) {
				got := h.measure(parents, h.runEnsuring(func(s houseSel) { s.Conditions(); c.register(s) }))
				t.Logf("%d parents with conditions, %s: %v, after a restart %v and %.1f KiB for each",
					parents, name, got.created, got.restarted, got.heap)
				if d := cmp.Diff(c.wantOnCreation, got.created); d != "" {
					t.Errorf("requests for a creation: -want, +got:\n%s", d)
				}
				if d := cmp.Diff(c.wantAfterRestart, got.restarted); d != "" {
					t.Errorf("%s: -want, +got:\n%s", c.reason, d)
				}
			})
		})
	}
}
