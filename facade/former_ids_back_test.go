package kopf_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestFormerIDsOnTheWayBack shows that a former version begins again, and that one with the ids exchanged continues.
func TestFormerIDsOnTheWayBack(t *testing.T) {
	for name, tc := range map[string]struct {
		reason         string
		registerFormer func(s houseSelection, r *renamedHandlers)
		want           string
		records        []string
	}{
		"the same binary": {
			"without the new id, attempts count from zero, and the record of the new id stays",
			func(s houseSelection, r *renamedHandlers) { s.OnCreate("old", r.returnResult) }, "old 0", []string{"new"},
		},
		"with the ids exchanged": {
			"with the ids exchanged, the handler takes over the record of the new id",
			func(s houseSelection, r *renamedHandlers) { s.OnCreate("old", r.returnResult, kopf.FormerIDs("new")) },
			"old 2", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			withEnsureFixture(t, func(h ensureFixture) {
				var r renamedHandlers
				h.createHouse()
				r.runVersion(h, kopf.Settings{}, func(s houseSelection) { s.OnCreate("old", r.failLater) })
				r.runVersion(h, kopf.Settings{}, func(s houseSelection) {
					s.OnCreate("new", r.failLater, kopf.FormerIDs("old"))
				})
				h.settle()
				r.runVersion(h, kopf.Settings{}, func(s houseSelection) { tc.registerFormer(s, &r) })
				if d := cmp.Diff([]string{"old 0", "new 1", tc.want}, r.calls); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
				if d := cmp.Diff(tc.records, h.recordIDs()); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}
