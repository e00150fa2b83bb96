package owned_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// What a handler makes of the owner is written when it has returned, and the next one goes on from that.
func TestWrites(t *testing.T) {
	answer := func(version int, released bool, refused, err error) func() (patching.Result, error) {
		return func() (patching.Result, error) {
			result := patching.Result{Released: released, StatusRefused: refused}
			if version > 0 {
				result.Body = object("Owner", "o", version).Object
			}
			return result, err
		}
	}
	const first, second, repair = "h ADDED c@1", "h ADDED d@1", "repair o"
	for name, tc := range map[string]struct {
		reason   string
		act      handlers.Func
		answer   func() (patching.Result, error)
		want     []string
		version  string // of the result; empty without one
		released bool
		after    time.Duration
	}{
		"Nothing": {"there is nothing to write", fail(nil), nil, []string{first, second, repair}, "", false, -1},
		"Result": {
			"it is a part of the status", set("done"), nil,
			[]string{first, "write map[h:done]", second, "write map[h:done i:2]", repair}, "100", false, -1,
		},
		"NoAnswer": {
			"the owner was gone when it was written", set("done"), answer(0, false, nil, nil),
			[]string{first, "write map[h:done]", second, "write map[i:2]", repair}, "10", false, -1,
		},
		"Answer": {
			"the owner is as the answer says", set("done"), answer(7, false, nil, nil),
			[]string{first, "write map[h:done]", second, "write map[i:2]", repair}, "70", false, -1,
		},
		"Released": {
			"the owner is gone by the write", set("done"), answer(7, true, nil, nil),
			[]string{first, "write map[h:done]"}, "7", true, -1,
		},
		"Failed": {
			"the handler is told again", set("done"), answer(0, false, nil, errBad),
			[]string{first, "write map[h:done]", second, "write map[i:2]", repair}, "10", false, 10 * time.Second,
		},
		"StatusRefused": {
			"what was to be written is not there", set("done"), answer(7, false, errBad, nil),
			[]string{first, "write map[h:done]", second, "write map[i:2]", repair}, "10", false, 10 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				next := fail(nil)
				if tc.version != "" {
					next = func(_ context.Context, call *handlers.Invocation) error {
						return call.Writes.Remember(func(body map[string]any) error {
							status, _ := body["status"].(map[string]any)
							if status == nil {
								status = map[string]any{}
							}
							status["i"] = 2
							body["status"] = status
							return nil
						})
					}
				}
				w := newWorld(t, telling("h", tc.act, next))
				if tc.answer != nil {
					w.answers = append(w.answers, tc.answer)
				}
				w.route.Seen(known("o"))
				w.seen(w.pods, owned.Added, child("c", 1, "o"))
				w.seen(w.pods, owned.Added, child("d", 1, "o"))
				w.journal = nil
				result := w.tend("o")
				w.want(tc.reason, tc.want...)
				w.after(result, tc.after)
				if got := patching.VersionOf(result.Body); got != tc.version || result.Released != tc.released {
					t.Errorf("got version %q, released %v; want %q, %v", got, result.Released, tc.version, tc.released)
				}
				if said := len(w.said); (tc.after >= 0) != (said == 1) {
					t.Errorf("a write that fails is spoken of: %q", w.said)
				}
			})
		})
	}
}

// What is reported of a call is the outcome that its write has led to.
func TestWritesDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		refused error
		want    []string
	}{
		"Refused": {errBad, []string{"success", "retry"}},
		"Written": {nil, []string{"success"}},
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			w := newWorld(t, func(w *world) *handlers.Handler {
				h := telling("h", set("done"))(w)
				h.Observe = func(ctx context.Context, _ *handlers.Invocation) (context.Context, func(string, error)) {
					return ctx, func(outcome string, _ error) { told = append(told, outcome) }
				}
				return h
			})
			w.answers = append(w.answers, func() (patching.Result, error) {
				return patching.Result{Body: object("Owner", "o", 7).Object, StatusRefused: tc.refused}, nil
			})
			w.route.Seen(known("o"))
			w.seen(w.pods, owned.Added, child("c", 1, "o"))
			w.tend("o")
			if !slices.Equal(told, tc.want) {
				t.Errorf("got %v, want %v", told, tc.want)
			}
		})
	}
}

// Nothing begins in a pause, be it a call or a repair; what a call has made before is written.
func TestPauses(t *testing.T) {
	var w *world
	w = newWorld(t, telling("h", func(_ context.Context, call *handlers.Invocation) error {
		w.closed = true
		return call.Writes.SetResult("done")
	}))
	w.route.Seen(known("o"))
	w.seen(w.pods, owned.Added, child("c", 1, "o"))
	w.seen(w.pods, owned.Added, child("d", 1, "o"))
	w.journal = nil
	w.tend("o")
	w.want("the second child waits for the end of the pause", "h ADDED c@1", "write map[h:done]")
	w.tend("o")
	w.want("it still does")
	w.closed = false
	w.tend("o")
	w.want("now it is told of", "h ADDED d@1", "repair o")
	w.handling.Gate = nil
	w.seen(w.pods, owned.Modified, child("d", 2, "o"))
	w.journal = nil
	w.tend("o")
	w.want("an operator without a gate never pauses", "h MODIFIED d@2", "repair o")
}

// A handler without a function has children repaired, and is told nothing.
func TestRepairs(t *testing.T) {
	silent := func(*world) *handlers.Handler {
		return &handlers.Handler{ID: "silent", Family: handlers.Tending, Owned: pods}
	}
	repaired := time.Minute
	w := newWorld(t, silent)
	w.route.Seen(known("o"))
	w.seen(w.pods, owned.Added, child("c", 1, "o"))
	w.want("nobody wants to know")
	w.drifts["c"] = true
	w.seen(w.pods, owned.Modified, child("c", 2, "o"))
	w.seen(w.pods, owned.Modified, child("c", 3, "stranger"))
	w.want("the child is to be repaired, and is not there any more", "pass o", "pass o")
	w.seen(w.pods, owned.Deleted, child("c", 4, "o"))
	w.want("strangers are not repaired", "gone c")
	w.again = &repaired
	w.after(w.tend("o"), repaired)
	w.want("it is told when to look again", "repair o")

	w = newWorld(t, silent, telling("h"))
	w.route.Seen(known("o"))
	w.seen(w.pods, owned.Added, child("c", 1, "o"))
	w.tend("o")
	w.want("others are told", "pass o", "h ADDED c@1", "repair o")
}
