package reconcilers_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// ownPrefix is the prefix of annotations and finalizers of the operators in these tests.
const ownPrefix = "coming.example.org/"

type laterError struct{ delay time.Duration }

func (e laterError) Error() string { return "not yet" }

func (e laterError) RetryAfter() time.Duration { return e.delay }

// holdingHandlers returns background handlers that hold their object until they are stopped.
func holdingHandlers() map[string]*handlers.Handler {
	return map[string]*handlers.Handler{
		"Daemon": daemon("b", handlers.BackgroundOptions{}, untilStopped), "Timer": timer("b", time.Hour, succeed),
	}
}

// recordedHandler returns the handler with a function that records its calls. On a deletion, it returns the errors
// first.
func (j *journal) recordedHandler(h handlers.Handler, errs ...error) handlers.Handler {
	h.Call = func(_ context.Context, c *handlers.Invocation) error {
		j.add(string(c.Cause.Reason) + " " + h.ID)
		if c.Cause.Reason != cause.Delete || len(errs) == 0 {
			return nil
		}
		err := errs[0]
		errs = errs[1:]
		return err
	}
	return h
}

// TestDeletionsHeldInTheBackground shows that handlers of a deletion are called, with retries, while a daemon or a
// timer holds the object; afterwards, the object is released.
func TestDeletionsHeldInTheBackground(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	once := 1
	optional := handlers.Handler{ID: "o", Reason: cause.Delete, Optional: true}
	limited := optional
	limited.Policy.Retries = &once
	five, seven := laterError{5 * time.Second}, laterError{7 * time.Second}
	resuming, field := handlers.Handler{ID: "r", Initial: true, EvenIfDeleted: true}, handlers.Handler{
		ID: "f", Field: diff.Path{"data", "k"}, NeedsChange: true,
	}
	tests := map[string]struct {
		reason string
		down   bool // during the deletion
		own    handlers.Handler
		errs   []error
		want   string
	}{
		"DownResuming": {"a resume handler for deleted objects is called", true, resuming, nil, "1m0s delete r; gone"},
		"DownOtherwise": {"a resume handler is not called for a deleted object", true,
			handlers.Handler{ID: "r", Initial: true}, nil, "gone"},
		"DownOptional": {"an optional deletion handler is called after a restart", true, optional, nil,
			"1m0s delete o; gone"},
		"DownOptionalLater": {
			"an optional deletion handler is retried after a restart", true, optional, []error{five, seven},
			"1m0s delete o; 1m5s delete o; 1m12s delete o; gone",
		},
		// This behaviour is kept although it looks like a mistake: K-field-always.
		"DownField": {"a handler of a changed field is called", true, field, nil, "0s create f; 1m0s delete f; gone"},
		"DownSameField": {
			"a handler of an unchanged field is not called", true,
			handlers.Handler{ID: "f", Field: diff.Path{"data", "same"}, NeedsChange: true},
			nil, "0s create f; gone",
		},
		"DownOthers": {
			"an update handler is not called, and the object is released", true,
			handlers.Handler{ID: "u", Reason: cause.Update}, nil, "gone",
		},
		"LiveOptional": {
			"an optional deletion handler is called by the running operator", false, optional, nil,
			"1m0s delete o; gone",
		},
		"LiveOptionalLater": {
			"an optional deletion handler is retried after the background handler has ended", false, optional,
			[]error{five, seven},
			"1m0s delete o; 1m5s delete o; 1m12s delete o; gone",
		},
		"LiveOptionalFailed": {
			"an optional deletion handler that fails permanently releases the object", false, limited,
			[]error{errors.New("bad")}, "1m0s delete o; gone",
		},
		"LiveOthers": {
			"an update handler is not called, and the object is released", false,
			handlers.Handler{ID: "u", Reason: cause.Update}, nil, "gone",
		},
	}
	for name, tc := range tests {
		for held, holder := range holdingHandlers() {
			t.Run(name+"/"+held, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					j := &journal{startTime: time.Now()}
					own := j.recordedHandler(tc.own, tc.errs...)
					deleteHeld(t, j, tc.down, registrationFor(t, "configmaps", holder),
						registrationFor(t, "configmaps", &own))
					if d := cmp.Diff(tc.want, j.String()); d != "" {
						t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
					}
				})
			})
		}
	}
}

// TestDeletionsHeldInTheBackgroundAlone shows that background handlers release the object without other handlers.
func TestDeletionsHeldInTheBackgroundAlone(t *testing.T) {
	for name, down := range map[string]bool{"Live": false, "Down": true} {
		for held, holder := range holdingHandlers() {
			t.Run(name+"/"+held, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					j := &journal{startTime: time.Now()}
					deleteHeld(t, j, down, registrationFor(t, "configmaps", holder))
					if d := cmp.Diff("gone", j.String()); d != "" {
						t.Errorf("-want, +got:\n%s", d)
					}
				})
			})
		}
	}
}

// deleteHeld deletes an object after a minute, with an edit before if the operator is down, and records whether the
// object is finally gone.
func deleteHeld(t *testing.T, j *journal, down bool, registrations ...reconcilers.Registration) {
	t.Helper()
	server := memapi.New()
	p := newDirectClient(t, server)
	p.create("ConfigMap", "c")
	p.merge("ConfigMap", "c", `{"data":{"k":"one","same":"x"}}`)
	stop := operateAll(t, server, reconcilers.Options{}, registrations...)
	time.Sleep(10 * time.Second)
	if d := cmp.Diff([]string{ownPrefix + "finalizer"}, p.get("ConfigMap", "c").GetFinalizers()); d != "" {
		t.Errorf("finalizers before the deletion: -want, +got:\n%s", d)
	}
	if down {
		stop()
		p.merge("ConfigMap", "c", `{"data":{"k":"two"}}`)
		p.remove("ConfigMap", "c")
		time.Sleep(time.Until(j.startTime.Add(time.Minute)))
		stop = operateAll(t, server, reconcilers.Options{}, registrations...)
	} else {
		time.Sleep(time.Until(j.startTime.Add(time.Minute)))
		p.remove("ConfigMap", "c")
	}
	time.Sleep(30 * time.Second)
	stop()
	end := "held"
	if p.count("ConfigMap") == 0 {
		end = "gone"
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, end)
}

// TestFiltersThatFailDoNotHoldDeletions shows that a filter that fails for an object being deleted does not hold it.
func TestFiltersThatFailDoNotHoldDeletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := daemon("d", handlers.BackgroundOptions{}, untilStopped)
		d.Filters = []handlers.Filter{func(_ context.Context, c *cause.Cause) (bool, error) {
			if c.Deleting {
				panic("this filter knows no deletions")
			}
			return true, nil
		}}
		j := &journal{startTime: time.Now()}
		deleteHeld(t, j, true, registrationFor(t, "configmaps", d))
		if d := cmp.Diff("gone", strings.Join(j.lines, "; ")); d != "" {
			t.Errorf("-want, +got:\n%s", d)
		}
	})
}
