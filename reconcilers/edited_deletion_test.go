package reconcilers_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// TestEditsOfFailedDeletions shows that an edit of a kept object calls the failed handler again, whatever else happens
// (deviation D-hold-failure). The deletion is after 1 minute, the edit after 6 minutes.
func TestEditsOfFailedDeletions(t *testing.T) {
	edit := func(d *deletionRun) { d.merge("ConfigMap", "c", `{"data":{"k":"two"}}`) }
	other := func(e handlers.Handler, errs ...error) func(j *journal) handlers.Handler {
		e.ID, e.Reason = "e", cause.Delete
		return func(j *journal) handlers.Handler { return j.recordedHandler(e, errs...) }
	}
	waiting := laterError{8 * time.Minute}
	filtered := handlers.Handler{Filters: []handlers.Filter{handlers.MatchLabels(must(labels.Parse("!orphan")))}}
	for name, tc := range map[string]struct {
		reason string
		other  func(j *journal) handlers.Handler
		act    func(d *deletionRun)
		want   string
	}{
		"Unreachable": {
			"the removal of the record is repeated until it succeeds", other(handlers.Handler{}),
			func(d *deletionRun) {
				d.down.Store(true)
				edit(d)
				time.Sleep(5 * time.Second)
				d.down.Store(false)
			}, "1m0s delete d; 1m0s delete e; 6m7s delete d; gone",
		},
		"BetweenRetries": {
			"an edit seen by another handler still calls the failed handler again", other(handlers.Handler{}, waiting),
			edit,
			"1m0s delete d; 1m0s delete e; 9m0s delete e; 9m0s delete d; gone",
		},
		"Unedited": {
			"the retries of another handler do not count as an edit", other(handlers.Handler{}, waiting), nil,
			"1m0s delete d; 1m0s delete e; 9m0s delete e; held",
		},
		"FilteredOut": {
			"a handler that does not match any more is not waited for", other(filtered, waiting),
			func(d *deletionRun) { d.merge("ConfigMap", "c", `{"metadata":{"labels":{"orphan":"yes"}}}`) },
			"1m0s delete d; 1m0s delete e; 6m0s delete d; gone",
		},
		"Patching": {
			"the later patches of another handler do not count as an edit", func(j *journal) handlers.Handler {
				e := handlers.Handler{ID: "e", Reason: cause.Delete}
				errs := []error{waiting, nil}
				e.Call = func(_ context.Context, c *handlers.Invocation) error {
					j.add("delete e")
					err, text := errs[0], time.Now().String()
					errs = errs[1:]
					return errors.Join(err, c.Writer.AddTransform(func(body map[string]any) error {
						body["data"] = map[string]any{"called": text}
						return nil
					}))
				}
				return e
			}, nil, "1m0s delete d; 1m0s delete e; 9m0s delete e; held",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := &journal{startTime: time.Now()}
				own, e := j.recordedHandler(holdingDeleteHandler(handlers.Policy{}), refusal{}), tc.other(j)
				deleteFailing(t, j, tc.act, registrationFor(t, "configmaps", &own),
					registrationFor(t, "configmaps", &e))
				if d := cmp.Diff(tc.want, j.String()); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}

// TestEditsOfFailedSubHandlers shows that an edit between the failure of one sub-handler and the end of another one
// counts.
func TestEditsOfFailedSubHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{startTime: time.Now()}
		failing := j.recordedHandler(handlers.Handler{ID: "bad", Reason: cause.Delete}, refusal{})
		later := j.recordedHandler(handlers.Handler{ID: "later", Reason: cause.Delete}, laterError{8 * time.Minute})
		own := holdingDeleteHandler(handlers.Policy{})
		own.Call = func(_ context.Context, c *handlers.Invocation) error {
			return errors.Join(
				c.Subs.Declare(&handlers.Handler{ID: "bad", Call: failing.Call}),
				c.Subs.Declare(&handlers.Handler{ID: "later", Call: later.Call}),
			)
		}
		deleteFailing(t, j, func(d *deletionRun) { d.merge("ConfigMap", "c", `{"data":{"k":"two"}}`) },
			registrationFor(t, "configmaps", &own))
		want := "1m0s delete bad; 1m0s delete later; 9m0s delete later; 9m0s delete bad; 9m0s delete later; gone"
		if d := cmp.Diff(want, j.String()); d != "" {
			t.Errorf("-want, +got:\n%s", d)
		}
	})
}

// TestUnwrittenOutcomesBesideFailedDeletions shows that a handler whose outcome could not be written at first is not
// called again, although the failure of another handler was written before.
func TestUnwrittenOutcomesBesideFailedDeletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, server := &journal{startTime: time.Now()}, memapi.New()
		own := j.recordedHandler(holdingDeleteHandler(handlers.Policy{}), refusal{})
		d := &deletionRun{directClient: newDirectClient(t, server), server: server}
		slow := handlers.Handler{ID: "e", Reason: cause.Delete, Call: func(
			context.Context, *handlers.Invocation,
		) error {
			j.add("delete e")
			time.Sleep(10 * time.Second) // longer than the checkpoint that writes the failure of the other one
			d.down.Store(true)
			return nil
		}}
		d.registrations = append(d.registrations, registrationFor(t, "configmaps", &own),
			registrationFor(t, "configmaps", &slow))
		d.options.BoundTo = ownPrefix + "handled-uid"
		d.start()
		d.create("ConfigMap", "c")
		d.merge("ConfigMap", "c", `{"metadata":{"finalizers":["coming.example.org/finalizer"]}}`)
		d.merge("ConfigMap", "c", `{"data":{"k":"unhandled"}}`)
		d.remove("ConfigMap", "c")
		time.Sleep(time.Minute)
		d.down.Store(false)
		time.Sleep(5 * time.Minute)
		d.stop()
		if diff := cmp.Diff("0s delete d; 0s delete e", j.String()); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}
