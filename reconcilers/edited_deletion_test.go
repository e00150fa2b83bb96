package reconcilers_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// An edit of a kept object calls the failed handler again, whenever the object is edited and whatever else happens
// (deviation D-hold-failure). The deletion is after 1 minute, the edit after 6 minutes.
func TestEditsOfFailedDeletions(t *testing.T) {
	edit := func(d *disappearing) { d.merge("ConfigMap", "c", `{"data":{"k":"two"}}`) }
	other := func(e handlers.Handler, errs ...error) func(j *journal) handlers.Handler {
		e.ID, e.Reason = "e", cause.Delete
		return func(j *journal) handlers.Handler { return j.wisher(e, errs...) }
	}
	for name, tc := range map[string]struct {
		reason string
		other  func(j *journal) handlers.Handler
		act    func(d *disappearing)
		want   string
	}{
		"Unreachable": {
			"a failed removal of the record is repeated", other(handlers.Handler{}), func(d *disappearing) {
				d.down.Store(true)
				edit(d)
				time.Sleep(5 * time.Second)
				d.down.Store(false)
			}, "1m0s delete d; 1m0s delete e; 6m7s delete d; gone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := &journal{began: time.Now()}
				own, e := j.wisher(keeping(handlers.Policy{}), refusal{}), tc.other(j)
				deleteFailing(t, j, tc.act, to(t, "configmaps", &own), to(t, "configmaps", &e))
				if d := cmp.Diff(tc.want, j.String()); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}
