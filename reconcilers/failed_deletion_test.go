package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// refusal is a permanent error.
type refusal struct{}

func (refusal) Error() string { return "the row is referenced" }

func (refusal) Permanent() bool { return true }

// holdingDeleteHandler returns a deletion handler whose permanent failure keeps its object.
func holdingDeleteHandler(policy handlers.Policy) handlers.Handler {
	return handlers.Handler{ID: "d", Reason: cause.Delete, HoldOnFailure: true, Policy: policy}
}

// TestDeletionsThatFailKeepTheirObjects shows that a deletion that has failed permanently keeps the object until a user
// edits or releases it (deviation D-hold-failure).
func TestDeletionsThatFailKeepTheirObjects(t *testing.T) {
	permanent, again := []error{refusal{}}, laterError{10 * time.Second}
	filtered := holdingDeleteHandler(handlers.Policy{})
	filtered.Filters = []handlers.Filter{handlers.MatchLabels(must(labels.Parse("!orphan")))}
	letting := holdingDeleteHandler(handlers.Policy{})
	letting.HoldOnFailure = false
	edit := func(d *deletionRun) { d.merge("ConfigMap", "c", `{"data":{"k":"two"}}`) }
	for name, tc := range map[string]struct {
		reason string
		own    handlers.Handler
		errs   []error
		act    func(d *deletionRun) // 5 minutes after the deletion
		want   string
	}{
		"Permanent": {"a permanent error keeps the object", holdingDeleteHandler(handlers.Policy{}), permanent, nil,
			"1m0s delete d; held"},
		"Unkept": {"without the option, a permanent error releases the object", letting, permanent, nil,
			"1m0s delete d; gone"},
		"Succeeding": {"a success releases the object", holdingDeleteHandler(handlers.Policy{}), nil, nil,
			"1m0s delete d; gone"},
		"Retries": {
			"a handler without retries left keeps the object",
			holdingDeleteHandler(handlers.Policy{Retries: ptr.To(2)}),
			[]error{again, again}, nil,
			"1m0s delete d; 1m10s delete d; held",
		},
		"Timeout": {
			"a handler without time left keeps the object",
			holdingDeleteHandler(handlers.Policy{Timeout: ptr.To(15 * time.Second)}),
			[]error{again, again, again}, nil, "1m0s delete d; 1m10s delete d; held",
		},
		"Edited": {
			"an edit calls the failed handler again", holdingDeleteHandler(handlers.Policy{}), permanent, edit,
			"1m0s delete d; 6m0s delete d; gone",
		},
		"EditedInVain": {
			"a second failure keeps the object until another edit", holdingDeleteHandler(handlers.Policy{}),
			[]error{refusal{}, refusal{}}, edit, "1m0s delete d; 6m0s delete d; held",
		},
		"Restarted": {
			"after a restart, the failed handler is not called again", holdingDeleteHandler(handlers.Policy{}),
			permanent,
			func(d *deletionRun) { d.stop(); d.start() }, "1m0s delete d; held",
		},
		"EditedWhileDown": {
			"an edit while the operator is down calls the failed handler again",
			holdingDeleteHandler(handlers.Policy{}), permanent,
			func(d *deletionRun) { d.stop(); edit(d); d.start() }, "1m0s delete d; 6m0s delete d; gone",
		},
		"Touched": {
			"a change of the status does not call the failed handler again", holdingDeleteHandler(handlers.Policy{}),
			permanent,
			func(d *deletionRun) { d.merge("ConfigMap", "c", `{"status":{"a":"b"}}`) }, "1m0s delete d; held",
		},
		"Released": {"a user can release the object by removing the finalizer", holdingDeleteHandler(handlers.Policy{}),
			permanent,
			(*deletionRun).removeFinalizers,
			"1m0s delete d; gone"},
		"FilteredOut": {
			"the object is released when the failed handler does not match any more", filtered, permanent,
			func(d *deletionRun) {
				d.merge("ConfigMap", "c", `{"metadata":{"labels":{"orphan":"yes"}}}`)
			}, "1m0s delete d; gone",
		},
		"Forgotten": {
			"removing the record calls the failed handler again", holdingDeleteHandler(handlers.Policy{}), permanent,
			func(d *deletionRun) {
				d.merge("ConfigMap", "c", `{"metadata":{"annotations":{"coming.example.org/d":null}}}`)
			}, "1m0s delete d; 6m0s delete d; gone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := &journal{startTime: time.Now()}
				own := j.recordedHandler(tc.own, tc.errs...)
				deleteFailing(t, j, tc.act, registrationFor(t, "configmaps", &own))
				if d := cmp.Diff(tc.want, j.String()); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}

// deleteFailing deletes an object after a minute, calls act 5 minutes later, and records whether the object is gone
// another 5 minutes later.
func deleteFailing(
	t *testing.T, j *journal, act func(d *deletionRun), registrations ...reconcilers.Registration,
) {
	t.Helper()
	server := memapi.New()
	d := &deletionRun{directClient: newDirectClient(t, server), server: server, registrations: registrations}
	d.options.BoundTo = ownPrefix + "handled-uid"
	d.start()
	d.create("ConfigMap", "c")
	time.Sleep(time.Until(j.startTime.Add(time.Minute)))
	d.remove("ConfigMap", "c")
	time.Sleep(5 * time.Minute)
	if act != nil {
		act(d)
	}
	time.Sleep(5 * time.Minute)
	d.stop()
	end := "held"
	if d.count("ConfigMap") == 0 {
		end = "gone"
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, end)
}

// TestDeletionsThatFailWithPatches shows that changes by the failing handler do not count as edits, even if they differ
// each time.
func TestDeletionsThatFailWithPatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, calls := &journal{startTime: time.Now()}, 0
		own := holdingDeleteHandler(handlers.Policy{})
		own.Call = func(_ context.Context, c *handlers.Invocation) error {
			j.add("delete d")
			calls++
			text := fmt.Sprint(calls)
			return errors.Join(refusal{}, c.Writer.AddTransform(func(body map[string]any) error {
				body["data"] = map[string]any{"calls": text}
				return nil
			}))
		}
		other := j.recordedHandler(handlers.Handler{ID: "e", Reason: cause.Delete})
		deleteFailing(t, j, func(d *deletionRun) {
			d.merge("ConfigMap", "c", `{"metadata":{"labels":{"l":"x"}}}`)
		}, registrationFor(t, "configmaps", &own), registrationFor(t, "configmaps", &other))
		if d := cmp.Diff("1m0s delete d; 1m0s delete e; 6m0s delete d; held", j.String()); d != "" {
			t.Errorf("want one call and one for the edit, and no second call of e: -want, +got:\n%s", d)
		}
	})
}

// TestDeletionsWhoseSubHandlersFail shows that the failure of a sub-handler keeps the object, too, and that an edit
// calls that sub-handler again.
func TestDeletionsWhoseSubHandlersFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{startTime: time.Now()}
		failing := j.recordedHandler(handlers.Handler{ID: "bad", Reason: cause.Delete}, refusal{})
		good := j.recordedHandler(handlers.Handler{ID: "good", Reason: cause.Delete})
		own := holdingDeleteHandler(handlers.Policy{})
		own.Call = func(_ context.Context, c *handlers.Invocation) error {
			return errors.Join(
				c.Subs.Declare(&handlers.Handler{ID: "bad", Call: failing.Call}),
				c.Subs.Declare(&handlers.Handler{ID: "good", Call: good.Call}),
			)
		}
		deleteFailing(t, j, func(d *deletionRun) { d.merge("ConfigMap", "c", `{"data":{"k":"two"}}`) },
			registrationFor(t, "configmaps", &own))
		want := "1m0s delete bad; 1m0s delete good; 6m0s delete bad; 6m0s delete good; gone"
		if d := cmp.Diff(want, j.String()); d != "" {
			t.Errorf("-want, +got:\n%s", d)
		}
	})
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
