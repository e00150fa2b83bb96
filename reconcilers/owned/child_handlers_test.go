package owned_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

var errBad = errors.New("bad")

// fail returns an act that fails with err.
func fail(err error) handlers.Func {
	return func(context.Context, *handlers.Invocation) error { return err }
}

// set returns an act that writes value to the status of the owner.
func set(value string) handlers.Func {
	return func(_ context.Context, call *handlers.Invocation) error { return call.Writer.SetResult(value) }
}

type permanent struct{ error }

func (permanent) Permanent() bool { return true }

// atOnce is an error that asks for a retry without a delay.
type atOnce struct{ error }

func (atOnce) RetryAfter() time.Duration { return -1 }

type undecodable struct{ error }

func (undecodable) Undecodable() bool { return true }

// TestFailures shows whether and when a call for a child is retried, by the kind of error.
func TestFailures(t *testing.T) {
	const again = 10 * time.Second
	for name, tc := range map[string]struct {
		reason string
		act    handlers.Func
		after  time.Duration // -1 means never
		want   []string      // the calls of the pass at that time
	}{
		"None": {"a successful call is not repeated", fail(nil), -1, nil},
		"Ordinary": {"an ordinary error is retried after the backoff",
			fail(errBad), again, []string{"h ADDED c@1 again"}},
		"AtOnce": {"an error with its own delay is retried after it, here at once",
			fail(atOnce{errBad}), 0, []string{"h ADDED c@1 again"}},
		"Permanent": {"a permanent error is not retried", fail(permanent{errBad}), -1, nil},
		"Panic": {
			"a panic is retried like an ordinary error",
			func(context.Context, *handlers.Invocation) error { panic("bad") }, again,
			[]string{"h ADDED c@1 again"},
		},
		"Undecodable": {"an undecodable child is not retried before it changes", fail(undecodable{errBad}), -1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newHarness(t, recordingHandler("h", tc.act))
				w.route.NoteEvent(ownerIdentity("o"))
				w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
				w.journal = nil
				result := w.handleOwner("o")
				w.want(tc.reason, "h ADDED c@1", "repair o")
				w.wantRequeueAfter(result, tc.after)
				if tc.after > 0 {
					time.Sleep(tc.after - time.Second)
					w.wantRequeueAfter(w.handleOwner("o"), time.Second)
					w.want("before the retry is due", "repair o")
					time.Sleep(time.Second)
				}
				w.handleOwner("o")
				w.want(tc.reason, append(tc.want, "repair o")...)
				w.handleOwner("o")
				w.want("after the retry", "repair o")
				w.deliverEvent(w.pods, owned.Modified, child("c", 2, "o"))
				w.handleOwner("o")
				w.want("the count of attempts starts again with the next event", "pass o", "h MODIFIED c@2", "repair o")
			})
		})
	}
}

func (w *harness) wantRequeueAfter(result owned.ChildResult, want time.Duration) {
	w.t.Helper()
	switch {
	case want < 0 && result.RequeueAfter != nil:
		w.t.Errorf("requeued after %s, want no requeue", *result.RequeueAfter)
	case want >= 0 && result.RequeueAfter == nil:
		w.t.Errorf("not requeued, want a requeue after %s", want)
	case want >= 0 && *result.RequeueAfter != want:
		w.t.Errorf("requeued after %s, want %s", *result.RequeueAfter, want)
	}
}

// TestNearestAttempt shows that a delayed call for one child does not delay the others, and that the pass is requeued
// for the earliest attempt.
func TestNearestAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, recordingHandler("h", fail(errBad), fail(nil), fail(errBad)))
		w.route.NoteEvent(ownerIdentity("o"))
		w.deliverEvent(w.pods, owned.Added, child("b", 1, "o"))
		w.wantRequeueAfter(w.handleOwner("o"), 10*time.Second)
		time.Sleep(4 * time.Second)
		w.deliverEvent(w.pods, owned.Added, child("a", 1, "o"))
		w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
		w.journal = nil
		w.wantRequeueAfter(w.handleOwner("o"), 6*time.Second)
		w.want("the new children", "h ADDED a@1", "h ADDED c@1", "repair o")
		repaired := 2 * time.Second
		w.repairDelay = &repaired
		w.wantRequeueAfter(w.handleOwner("o"), repaired)
		time.Sleep(6 * time.Second)
		w.repairDelay = nil
		w.journal = nil
		w.wantRequeueAfter(w.handleOwner("o"), 4*time.Second)
		w.want("the retry that is due", "h ADDED b@1 again", "repair o")
	})
}

// TestLostWhileItWaits shows that a handler that never handled a child does not get its deletion.
func TestLostWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, recordingHandler("h", fail(errBad)))
		w.route.NoteEvent(ownerIdentity("o"))
		w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
		w.handleOwner("o")
		w.deliverEvent(w.pods, owned.Deleted, child("c", 2, "o"))
		w.journal = nil
		w.wantRequeueAfter(w.handleOwner("o"), -1)
		w.want("no call for the deletion", "repair o")
	})
}

// TestTimeout shows that the timeout of a handler for one event starts with its first attempt.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var started []time.Duration
		began := time.Now()
		note := func(_ context.Context, call *handlers.Invocation) error {
			started = append(started, call.Started.Sub(began))
			return errBad
		}
		limited := recordingHandler("h", note, note, note)
		timeout := 15 * time.Second
		w := newHarness(t, func(w *harness) *handlers.Handler {
			h := limited(w)
			h.Policy.Timeout = &timeout
			return h
		})
		w.route.NoteEvent(ownerIdentity("o"))
		time.Sleep(time.Minute)
		w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
		for range 4 {
			w.handleOwner("o")
			time.Sleep(10 * time.Second)
		}
		if len(started) != 2 || started[0] != time.Minute || started[1] != time.Minute {
			t.Errorf("got attempts that started at %v; want two, the first of which was after a minute", started)
		}
	})
}

// TestCutOff shows that a call interrupted by an exit does not count as an attempt.
func TestCutOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := newHarness(t, recordingHandler("h", func(ctx context.Context, _ *handlers.Invocation) error {
		cancel()
		<-ctx.Done()
		return context.Cause(ctx)
	}))
	w.route.NoteEvent(ownerIdentity("o"))
	w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
	w.deliverEvent(w.pods, owned.Added, child("d", 1, "o"))
	w.journal = nil
	w.wantRequeueAfter(w.handleOwnerWithin(ctx, "o"), -1)
	w.want("no further call begins", "h ADDED c@1")
	w.handleOwner("o")
	w.want("both children are reported as added", "h ADDED c@1", "h ADDED d@1", "repair o")
}

// TestFilters shows that a filter of owners decides about a call, and that a failing filter is logged and prevents it.
func TestFilters(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		ok     bool
		err    error
		want   []string
	}{
		"Yes": {"a passing filter is evaluated for each child",
			true, nil, []string{"filter", "h ADDED c@1", "filter", "h ADDED d@1"}},
		"No":     {"a filter that rejects the owner is evaluated once", false, nil, []string{"filter"}},
		"Broken": {"a failing filter rejects the owner", true, errBad, []string{"filter"}},
	} {
		t.Run(name, func(t *testing.T) {
			filter := func(context.Context, *cause.Cause) (bool, error) { return tc.ok, tc.err }
			w := newHarness(t, withOwnerFilter(recordingHandler("h"), filter))
			w.route.NoteEvent(ownerIdentity("o"))
			w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
			w.deliverEvent(w.pods, owned.Added, child("d", 1, "o"))
			w.journal = nil
			w.handleOwner("o")
			w.want(tc.reason, append(tc.want, "repair o")...)
			if said := strings.Contains(strings.Join(w.logLines, "\n"), "Filter"); said != (tc.err != nil) {
				t.Errorf("the failure of the filter is logged: %v: %q", said, w.logLines)
			}
		})
	}
}

// TestWants shows that a filter of children is evaluated once for each version, and that a rejected child is not
// reported.
func TestWants(t *testing.T) {
	asked := 0
	wanted := func(_ context.Context, child map[string]any) (bool, error) {
		asked++
		switch patching.ResourceVersion(child) {
		case "1":
			return false, nil
		case "2":
			return true, errBad
		default:
			return true, nil
		}
	}
	picky := recordingHandler("h")
	w := newHarness(t, func(w *harness) *handlers.Handler {
		h := picky(w)
		h.ChildFilter = wanted
		return h
	})
	w.route.NoteEvent(ownerIdentity("o"))
	for version := range 3 {
		w.deliverEvent(w.pods, owned.Modified, child("c", version+1, "o"))
		for range 2 {
			w.handleOwner("o")
		}
		if said := strings.Join(w.logLines, "\n"); strings.Contains(said,
			"Filter of children failed") != (version > 0) {
			t.Errorf("version %d: unexpected log lines about a failing filter: %s", version+1, said)
		}
	}
	if asked != 3 {
		t.Errorf("the filter was evaluated %d times, want once for each version", asked)
	}
	w.want("only the last version is reported", "pass o", "repair o", "repair o", "pass o", "repair o", "repair o",
		"pass o", "h MODIFIED c@3", "repair o", "repair o")
}

// TestUnsaved shows that the ends of children are written to the owner, and retried after a refusal.
func TestUnsaved(t *testing.T) {
	w := newHarness(t, recordingHandler("h"))
	w.route.NoteEvent(ownerIdentity("o"))
	w.journal = nil
	w.unsaved = func(body map[string]any) error {
		body["status"] = "done"
		return nil
	}
	w.handleOwner("o")
	w.want("a successful write", "write done", "repair o")
	w.answers = append(w.answers, func() (patching.WriteResult, error) { return patching.WriteResult{}, errBad })
	w.wantRequeueAfter(w.handleOwner("o"), 5*time.Second)
	w.want("a refused write", "write done", "repair o")
	if said := strings.Join(w.logLines, "\n"); !strings.Contains(said, "Failed to remember that children are done") ||
		!strings.Contains(said, `"annotations"=["record"]`) {
		t.Errorf("got %q", w.logLines)
	}
}

// TestUnsavedIsRefused shows that a refused write is retried with a growing delay, regardless of other passes over the
// owner.
func TestUnsavedIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, recordingHandler("h"))
		w.route.NoteEvent(ownerIdentity("o"))
		w.unsaved = func(body map[string]any) error {
			body["status"] = "done"
			return nil
		}
		refuse := func() (patching.WriteResult, error) { return patching.WriteResult{}, errBad }
		for _, seconds := range []int{5, 10, 20, 40, 80, 160, 300, 300} {
			delay := time.Duration(seconds) * time.Second
			w.journal, w.answers = nil, append(w.answers, refuse)
			w.wantRequeueAfter(w.handleOwner("o"), delay)
			w.want("a refused write", "write done", "repair o")
			time.Sleep(time.Second)
			w.wantRequeueAfter(w.handleOwner("o"), delay-time.Second)
			w.want("a pass during the delay", "repair o")
			time.Sleep(delay - time.Second)
		}
		w.handleOwner("o")
		w.want("a successful write", "write done", "repair o")
		w.answers = append(w.answers, refuse)
		w.wantRequeueAfter(w.handleOwner("o"), 5*time.Second)
	})
}
