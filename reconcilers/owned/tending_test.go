package owned_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

var errBad = errors.New("bad")

// fail is an act of a handler that fails with this.
func fail(err error) handlers.Func {
	return func(context.Context, *handlers.Invocation) error { return err }
}

// set is an act that writes this to the status of the owner.
func set(value string) handlers.Func {
	return func(_ context.Context, call *handlers.Invocation) error { return call.Writes.SetResult(value) }
}

type permanent struct{ error }

func (permanent) Permanent() bool { return true }

// atOnce is an error that asks for another attempt without a pause.
type atOnce struct{ error }

func (atOnce) RetryAfter() time.Duration { return -1 }

type undecodable struct{ error }

func (undecodable) Undecodable() bool { return true }

// What becomes of a handler's news when its call fails, and when to look again.
func TestFailures(t *testing.T) {
	const again = 10 * time.Second
	for name, tc := range map[string]struct {
		reason string
		act    handlers.Func
		after  time.Duration // -1 is never
		want   []string      // of a pass right then
	}{
		"None":      {"it knows all", fail(nil), -1, nil},
		"Ordinary":  {"it is told again after the backoff", fail(errBad), again, []string{"h ADDED c@1 again"}},
		"AtOnce":    {"it asks for no pause", fail(atOnce{errBad}), 0, []string{"h ADDED c@1 again"}},
		"Permanent": {"it is not told again", fail(permanent{errBad}), -1, nil},
		"Panic": {
			"that is an error like others", func(context.Context, *handlers.Invocation) error { panic("bad") }, again,
			[]string{"h ADDED c@1 again"},
		},
		"Undecodable": {"it cannot be told before the child has changed", fail(undecodable{errBad}), -1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, telling("h", tc.act))
				w.route.Seen(known("o"))
				w.seen(w.pods, owned.Added, child("c", 1, "o"))
				w.journal = nil
				result := w.tend("o")
				w.want(tc.reason, "h ADDED c@1", "repair o")
				w.after(result, tc.after)
				if tc.after > 0 {
					time.Sleep(tc.after - time.Second)
					w.after(w.tend("o"), time.Second)
					w.want("it is too early", "repair o")
					time.Sleep(time.Second)
				}
				w.tend("o")
				w.want(tc.reason, append(tc.want, "repair o")...)
				w.tend("o")
				w.want("there is nothing more", "repair o")
				w.seen(w.pods, owned.Modified, child("c", 2, "o"))
				w.tend("o")
				w.want("the account of attempts is that of one piece of news", "pass o", "h MODIFIED c@2", "repair o")
			})
		})
	}
}

func (w *world) after(result owned.Result, want time.Duration) {
	w.t.Helper()
	switch {
	case want < 0 && result.After != nil:
		w.t.Errorf("got another look after %s, want none", *result.After)
	case want >= 0 && result.After == nil:
		w.t.Errorf("got no other look, want one after %s", want)
	case want >= 0 && *result.After != want:
		w.t.Errorf("got another look after %s, want it after %s", *result.After, want)
	}
}

// A child for which a handler waits makes no other one wait; and the nearest of all is what there is to wait for.
func TestNearestAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, telling("h", fail(errBad), fail(nil), fail(errBad)))
		w.route.Seen(known("o"))
		w.seen(w.pods, owned.Added, child("b", 1, "o"))
		w.after(w.tend("o"), 10*time.Second)
		time.Sleep(4 * time.Second)
		w.seen(w.pods, owned.Added, child("a", 1, "o"))
		w.seen(w.pods, owned.Added, child("c", 1, "o"))
		w.journal = nil
		w.after(w.tend("o"), 6*time.Second)
		w.want("those that are new", "h ADDED a@1", "h ADDED c@1", "repair o")
		repaired := 2 * time.Second
		w.again = &repaired
		w.after(w.tend("o"), repaired)
		time.Sleep(6 * time.Second)
		w.again = nil
		w.journal = nil
		w.after(w.tend("o"), 4*time.Second)
		w.want("the one that is due", "h ADDED b@1 again", "repair o")
	})
}

// A handler that was never told of a child to the end is not told of the child's end.
func TestLostWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, telling("h", fail(errBad)))
		w.route.Seen(known("o"))
		w.seen(w.pods, owned.Added, child("c", 1, "o"))
		w.tend("o")
		w.seen(w.pods, owned.Deleted, child("c", 2, "o"))
		w.journal = nil
		w.after(w.tend("o"), -1)
		w.want("it has not heard of it", "repair o")
	})
}

// The time that a handler may take for a piece of news begins with the first attempt.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var started []time.Duration
		began := time.Now()
		note := func(_ context.Context, call *handlers.Invocation) error {
			started = append(started, call.Started.Sub(began))
			return errBad
		}
		limited := telling("h", note, note, note)
		timeout := 15 * time.Second
		w := newWorld(t, func(w *world) *handlers.Handler {
			h := limited(w)
			h.Policy.Timeout = &timeout
			return h
		})
		w.route.Seen(known("o"))
		time.Sleep(time.Minute)
		w.seen(w.pods, owned.Added, child("c", 1, "o"))
		for range 4 {
			w.tend("o")
			time.Sleep(10 * time.Second)
		}
		if len(started) != 2 || started[0] != time.Minute || started[1] != time.Minute {
			t.Errorf("got attempts that have begun at %v; want two, of which the first one was after a minute", started)
		}
	})
}

// A call that the exit of the operator has cut off does not count.
func TestCutOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := newWorld(t, telling("h", func(ctx context.Context, _ *handlers.Invocation) error {
		cancel()
		<-ctx.Done()
		return context.Cause(ctx)
	}))
	w.route.Seen(known("o"))
	w.seen(w.pods, owned.Added, child("c", 1, "o"))
	w.seen(w.pods, owned.Added, child("d", 1, "o"))
	w.journal = nil
	w.after(w.tendWithin(ctx, "o"), -1)
	w.want("nothing begins any more", "h ADDED c@1")
	w.tend("o")
	w.want("both are as new as before", "h ADDED c@1", "h ADDED d@1", "repair o")
}

// Filters decide, and one that fails decides against the call, which is said.
func TestFilters(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		ok     bool
		err    error
		want   []string
	}{
		"Yes":    {"it is for the owner", true, nil, []string{"filter", "h ADDED c@1", "filter", "h ADDED d@1"}},
		"No":     {"it is for no child of the owner", false, nil, []string{"filter"}},
		"Broken": {"nobody knows", true, errBad, []string{"filter"}},
	} {
		t.Run(name, func(t *testing.T) {
			filter := func(context.Context, *cause.Cause) (bool, error) { return tc.ok, tc.err }
			w := newWorld(t, where(telling("h"), filter))
			w.route.Seen(known("o"))
			w.seen(w.pods, owned.Added, child("c", 1, "o"))
			w.seen(w.pods, owned.Added, child("d", 1, "o"))
			w.journal = nil
			w.tend("o")
			w.want(tc.reason, append(tc.want, "repair o")...)
			if said := strings.Contains(strings.Join(w.said, "\n"), "Filter"); said != (tc.err != nil) {
				t.Errorf("it is said: %v: %q", said, w.said)
			}
		})
	}
}

// A handler is not told of children that it does not want, as long as these are as they are.
func TestWants(t *testing.T) {
	asked := 0
	wanted := func(_ context.Context, child map[string]any) (bool, error) {
		asked++
		switch patching.VersionOf(child) {
		case "1":
			return false, nil
		case "2":
			return true, errBad
		default:
			return true, nil
		}
	}
	picky := telling("h")
	w := newWorld(t, func(w *world) *handlers.Handler {
		h := picky(w)
		h.Wants = wanted
		return h
	})
	w.route.Seen(known("o"))
	for version := range 3 {
		w.seen(w.pods, owned.Modified, child("c", version+1, "o"))
		for range 2 {
			w.tend("o")
		}
		if said := strings.Join(w.said, "\n"); strings.Contains(said, "Filter of children failed") != (version > 0) {
			t.Errorf("version %d: a filter that fails is spoken of: %s", version+1, said)
		}
	}
	if asked != 3 {
		t.Errorf("got %d questions, want one for each version", asked)
	}
	w.want("the last one alone", "pass o", "repair o", "repair o", "pass o", "repair o", "repair o",
		"pass o", "h MODIFIED c@3", "repair o", "repair o")
}

// How children have ended is written on the owner, and tried again if that fails.
func TestUnsaved(t *testing.T) {
	w := newWorld(t, telling("h"))
	w.route.Seen(known("o"))
	w.journal = nil
	w.unsaved = func(body map[string]any) error {
		body["status"] = "done"
		return nil
	}
	w.tend("o")
	w.want("it is written", "write done", "repair o")
	w.answers = append(w.answers, func() (patching.Result, error) { return patching.Result{}, errBad })
	w.after(w.tend("o"), 5*time.Second)
	w.want("it is refused", "write done", "repair o")
	if said := strings.Join(w.said, "\n"); !strings.Contains(said, "Failed to remember that children are done") ||
		!strings.Contains(said, `"annotations"=["record"]`) {
		t.Errorf("got %q", w.said)
	}
}

// A refused write is repeated with a growing delay, whatever happens to the owner meanwhile.
func TestUnsavedIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, telling("h"))
		w.route.Seen(known("o"))
		w.unsaved = func(body map[string]any) error {
			body["status"] = "done"
			return nil
		}
		refuse := func() (patching.Result, error) { return patching.Result{}, errBad }
		for _, seconds := range []int{5, 10, 20, 40, 80, 160, 300, 300} {
			delay := time.Duration(seconds) * time.Second
			w.journal, w.answers = nil, append(w.answers, refuse)
			w.after(w.tend("o"), delay)
			w.want("it is refused", "write done", "repair o")
			time.Sleep(time.Second)
			w.after(w.tend("o"), delay-time.Second)
			w.want("the delay is not over", "repair o")
			time.Sleep(delay - time.Second)
		}
		w.tend("o")
		w.want("it is written", "write done", "repair o")
		w.answers = append(w.answers, refuse)
		w.after(w.tend("o"), 5*time.Second)
	})
}
