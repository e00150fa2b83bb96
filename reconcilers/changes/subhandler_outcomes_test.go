package changes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// recordSubOutcomes returns a handler that records the success, failure, attempts and message of sub-handlers.
func recordSubOutcomes(to *[]string, ids ...string) handlers.Func {
	return func(_ context.Context, c *handlers.Invocation) error {
		for _, id := range ids {
			r, err := c.Subs.RecordOf(id)
			if err != nil {
				return err
			}
			*to = append(*to, fmt.Sprintf("%s %t %t %d %s", id, ptr.Deref(r.Success, false),
				ptr.Deref(r.Failure, false), ptr.Deref(r.Retries, 0), ptr.Deref(r.Message, "")))
		}
		return nil
	}
}

// TestSubHandlerOutcomes shows what a handler can read about its sub-handlers.
func TestSubHandlerOutcomes(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	forms := map[string]func(w *harness, registered ...*handlers.Handler) *process{
		"Compact": (*harness).compact,
		"Kopf": func(w *harness, registered ...*handlers.Handler) *process {
			return w.startWith(annotationStores, registered...)
		},
		"KopfStatus": func(w *harness, registered ...*handlers.Handler) *process {
			return w.startWith(statusStores, registered...)
		},
	}
	for form, start := range forms {
		run(t, map[string]scenario{
			form + "LaterAttempts": {"records are readable before sub-handlers are declared, also in the next process",
				func(w *harness) {
					var before, after []string
					flaky := fails(2, later)
					work := func(ctx context.Context, c *handlers.Invocation) error {
						return w.steps(nil, sub("a", ok), sub("b", fails(1, permanentError{})), sub("c", flaky),
							sub("d", ok, ifNever))(ctx, c)
					}
					ids := []string{"a", "b", "c", "d", "none"}
					run := func(ctx context.Context, c *handlers.Invocation) error {
						err := work(ctx, c)
						return errors.Join(recordSubOutcomes(&after, ids...)(ctx, c), err)
					}
					registered := onCreate("p", all(recordSubOutcomes(&before, ids...), run))
					start(w, registered).step()
					w.want("at first", []string{
						"a false false 0 ", "b false false 0 ", "c false false 0 ", "d false false 0 ",
						"none false false 0 ",
					}, before)
					w.want("after the run", []string{
						"a true false 1 ", "b false true 1 never", "c false false 1 not yet", "d false false 0 ",
						"none false false 0 ",
					}, after)
					known := after
					before, after = nil, nil
					time.Sleep(time.Minute)
					start(w, registered).step()
					w.want("in the next process", known, before)
					start(w, registered).settle()
					w.want("finally", "c true false 3 ", after[len(after)-3])
				}},
			form + "NewCause": {"records of a former cause do not count", func(w *harness) {
				var seen []string
				registered := on("", "p", all(recordSubOutcomes(&seen, "a"),
					w.steps(nil, sub("a", ok), sub("b", fails(5, later)))))
				p := start(w, registered)
				p.step()
				w.delete()
				p.settle()
				w.want("seen", []string{"a false false 0 "}, seen[:1])
			}},
			form + "Asked": {"a sub-handler can read the record of another one through its parent", func(w *harness) {
				var seen []string
				start(w, onCreate("p", func(ctx context.Context, c *handlers.Invocation) error {
					ask := func(ctx context.Context,
						_ *handlers.Invocation) error {
						return recordSubOutcomes(&seen, "a")(ctx, c)
					}
					return w.steps(nil, sub("a", fails(1, permanentError{})), sub("b", ask, afterEnd("a")))(ctx, c)
				})).settle()
				w.want("seen", []string{"a false true 1 never"}, seen)
			}},
			form + "Dropped": {"a finished sub-handler that is not declared any more is a valid dependency",
				func(w *harness) {
					flaky := fails(1, later)
					start(w, onCreate("p", func(ctx context.Context, c *handlers.Invocation) error {
						r, err := c.Subs.RecordOf("a")
						if err != nil {
							return err
						}
						if ptr.Deref(r.Success, false) {
							return w.steps(nil, sub("c", ok, afterSuccess("a", "b")), sub("b", flaky))(ctx, c)
						}
						return w.steps(nil, sub("a", ok), sub("b", flaky))(ctx, c)
					})).settle()
					w.wantCalls("all", "0s create p", "0s create a", "0s create b", "10s create p", "10s create b",
						"10s create c")
				}},
		})
	}
}

// TestDependenciesWithoutRoom shows the handling of sub-handlers whose dependency has no room.
func TestDependenciesWithoutRoom(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	run(t, map[string]scenario{"Last": {"dependents without room are not called, and the handler fails permanently",
		func(w *harness) {
			const many = 2000
			calls := callTally{}
			last := false
			p := w.startWith(annotationStores, onCreate("a", func(ctx context.Context, c *handlers.Invocation) error {
				final := sub("final", func(context.Context, *handlers.Invocation) error { last = true; return nil },
					afterSuccess(part(many-1)))
				if err := c.Subs.Declare(final); err != nil {
					return err
				}
				return declares(many, calls.counting(func(int) handlers.Func { return ok }))(ctx, c)
			}))
			p.settle()
			w.want("called", false, last)
			if len(calls) < 1000 || len(calls) == many {
				w.t.Errorf("%d of %d were called, want more than 1000 but not all", len(calls), many)
			}
			if !w.hasLogged("failed permanently", "not called") {
				w.t.Error("the failure of the handler is not logged")
			}
			if handled := len(w.calls()); handled > 3 {
				w.t.Errorf("want at most 3 calls of the handler, got %d", handled)
			}
			w.wantNoRefusals(p)
			w.wantClean("all")
		}}})
}

// TestRoomOfDependents shows that the records of sub-handlers fit that get them only when their wait for another one
// ends. Otherwise, each write would be refused, and no outcome would ever be stored.
func TestRoomOfDependents(t *testing.T) {
	run(t, map[string]scenario{"Failing": {"dependents that fail with long errors are called as far as they fit",
		func(w *harness) {
			w.leaveRoom(20_000)
			const many = 200
			calls := callTally{}
			p := w.startWith(annotationStores, onCreate("a", func(_ context.Context, c *handlers.Invocation) error {
				all := []*handlers.Handler{sub("first", ok)}
				for i := range many {
					call := calls.counting(func(int) handlers.Func {
						return func(context.Context, *handlers.Invocation) error {
							if calls[i] < 2 {
								return errors.Join(temporaryError{10 * time.Second}, errLong)
							}
							return nil
						}
					})
					all = append(all, sub(part(i), call(i), afterSuccess("first")))
				}
				for _, h := range all {
					if err := c.Subs.Declare(h); err != nil {
						return err
					}
				}
				return nil
			}))
			p.settle()
			if most, _ := calls.maxCalls(); most != 2 || len(calls) < 20 || len(calls) == many {
				w.t.Errorf("%d of %d dependents were called, one of them %d times", len(calls), many, most)
			}
			w.wantNoRefusals(p)
			w.wantClean("all")
		}}})
}
