package owned_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

// TestWrites shows that changes to the owner are written after each call, and that the next call starts from the
// result.
func TestWrites(t *testing.T) {
	answer := func(version int, released bool, refused, err error) func() (patching.WriteResult, error) {
		return func() (patching.WriteResult, error) {
			result := patching.WriteResult{Released: released, StatusRefusal: refused}
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
		answer   func() (patching.WriteResult, error)
		want     []string
		version  string // resource version of the result; empty without a write
		released bool
		after    time.Duration
	}{
		"Nothing": {"a call without changes writes nothing",
			fail(nil), nil, []string{first, second, repair}, "", false, -1},
		"Result": {
			"the result of a handler is written to the status", set("done"), nil,
			[]string{first, "write map[h:done]", second, "write map[h:done i:2]", repair}, "100", false, -1,
		},
		"NoAnswer": {
			"a write to a deleted owner keeps the former state", set("done"), answer(0, false, nil, nil),
			[]string{first, "write map[h:done]", second, "write map[i:2]", repair}, "10", false, -1,
		},
		"Answer": {
			"the next call starts from the response of the API server", set("done"), answer(7, false, nil, nil),
			[]string{first, "write map[h:done]", second, "write map[i:2]", repair}, "70", false, -1,
		},
		"Released": {
			"a write that releases the owner ends the pass", set("done"), answer(7, true, nil, nil),
			[]string{first, "write map[h:done]"}, "7", true, -1,
		},
		"Failed": {
			"a failed write repeats the call of the handler", set("done"), answer(0, false, nil, errBad),
			[]string{first, "write map[h:done]", second, "write map[i:2]", repair}, "10", false, 10 * time.Second,
		},
		"StatusRefused": {
			"a refused status repeats the call, and the next one starts from the rest that was written", set("done"),
			answer(7, false, errBad, nil),
			[]string{first, "write map[h:done]", second, "write map[i:2]", repair}, "70", false, 10 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				next := fail(nil)
				if tc.version != "" {
					next = func(_ context.Context, call *handlers.Invocation) error {
						return call.Writer.AddTransform(func(body map[string]any) error {
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
				w := newHarness(t, recordingHandler("h", tc.act, next))
				if tc.answer != nil {
					w.answers = append(w.answers, tc.answer)
				}
				w.route.NoteEvent(ownerIdentity("o"))
				w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
				w.deliverEvent(w.pods, owned.Added, child("d", 1, "o"))
				w.journal = nil
				result := w.handleOwner("o")
				w.want(tc.reason, tc.want...)
				w.wantRequeueAfter(result, tc.after)
				if got := patching.ResourceVersion(result.Body); got != tc.version || result.Released != tc.released {
					t.Errorf("got version %q, released %v; want %q, %v", got, result.Released, tc.version, tc.released)
				}
				if said := len(w.logLines); (tc.after >= 0) != (said == 1) {
					t.Errorf("unexpected log lines about a failed write: %q", w.logLines)
				}
			})
		})
	}
}

// TestWritesDecide shows that a refused write turns the reported success of a call into a retry.
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
			w := newHarness(t, func(w *harness) *handlers.Handler {
				h := recordingHandler("h", set("done"))(w)
				h.Observe = func(ctx context.Context, _ *handlers.Invocation) (context.Context, func(string, error)) {
					return ctx, func(outcome string, _ error) { told = append(told, outcome) }
				}
				return h
			})
			w.answers = append(w.answers, func() (patching.WriteResult, error) {
				return patching.WriteResult{Body: object("Owner", "o", 7).Object, StatusRefusal: tc.refused}, nil
			})
			w.route.NoteEvent(ownerIdentity("o"))
			w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
			w.handleOwner("o")
			if !slices.Equal(told, tc.want) {
				t.Errorf("got %v, want %v", told, tc.want)
			}
		})
	}
}

// TestPauses shows that no call and no repair begins in a pause, and that the changes of a running call are written.
func TestPauses(t *testing.T) {
	var w *harness
	w = newHarness(t, recordingHandler("h", func(_ context.Context, call *handlers.Invocation) error {
		w.closed = true
		return call.Writer.SetResult("done")
	}))
	w.route.NoteEvent(ownerIdentity("o"))
	w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
	w.deliverEvent(w.pods, owned.Added, child("d", 1, "o"))
	w.journal = nil
	w.handleOwner("o")
	w.want("the second child waits for the end of the pause", "h ADDED c@1", "write map[h:done]")
	w.handleOwner("o")
	w.want("a second pass in the pause")
	w.closed = false
	w.handleOwner("o")
	w.want("after the pause", "h ADDED d@1", "repair o")
	w.handling.Gate = nil
	w.deliverEvent(w.pods, owned.Modified, child("d", 2, "o"))
	w.journal = nil
	w.handleOwner("o")
	w.want("an operator without a gate never pauses", "h MODIFIED d@2", "repair o")
}

// TestRepairs shows that a handler without a function has its children repaired, and gets no calls.
func TestRepairs(t *testing.T) {
	silent := func(*harness) *handlers.Handler {
		return &handlers.Handler{ID: "silent", Family: handlers.Child, ParentHandler: pods}
	}
	repaired := time.Minute
	w := newHarness(t, silent)
	w.route.NoteEvent(ownerIdentity("o"))
	w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
	w.want("no pass without a drift")
	w.drifted["c"] = true
	w.deliverEvent(w.pods, owned.Modified, child("c", 2, "o"))
	w.deliverEvent(w.pods, owned.Modified, child("c", 3, "stranger"))
	w.want("a child that drifts, and is lost, requests passes", "pass o", "pass o")
	w.deliverEvent(w.pods, owned.Deleted, child("c", 4, "o"))
	w.want("the deletion of a foreign object requests no pass", "gone c")
	w.repairDelay = &repaired
	w.wantRequeueAfter(w.handleOwner("o"), repaired)
	w.want("the repair requests the next pass", "repair o")

	w = newHarness(t, silent, recordingHandler("h"))
	w.route.NoteEvent(ownerIdentity("o"))
	w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
	w.handleOwner("o")
	w.want("another handler is called", "pass o", "h ADDED c@1", "repair o")
}
