package changes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// part returns the id of one of many sub-handlers.
func part(i int) string { return fmt.Sprintf("part-%05d", i) }

// declares returns a handler that declares n sub-handlers.
func declares(n int, fn func(i int) handlers.Func) handlers.Func {
	return func(_ context.Context, c *handlers.Invocation) error {
		for i := range n {
			if err := c.Subs.Declare(&handlers.Handler{ID: part(i), Call: fn(i)}); err != nil {
				return err
			}
		}
		return nil
	}
}

// callTally counts the calls of functions by their numbers.
type callTally map[int]int

func (t callTally) counting(fn func(i int) handlers.Func) func(i int) handlers.Func {
	return func(i int) handlers.Func {
		return func(ctx context.Context, c *handlers.Invocation) error {
			t[i]++
			return fn(i)(ctx, c)
		}
	}
}

// maxCalls returns the calls of the function that was called most often, and the number of all calls.
func (t callTally) maxCalls() (most, calls int) {
	for _, n := range t {
		most, calls = max(most, n), calls+n
	}
	return most, calls
}

// compact starts a process that uses the compact records of sub-handlers.
func (w *harness) compact(registered ...*handlers.Handler) *process {
	p := w.startWith(annotationStores, registered...)
	p.handling.CompactSubs = true
	return p
}

// wantNoRefusals checks that all writes were accepted.
func (w *harness) wantNoRefusals(p *process) {
	w.t.Helper()
	w.want("errors", []error(nil), p.errs)
	for _, answer := range w.drainWrites() {
		if answer != "main 200" {
			w.t.Errorf("a write was refused: %s", answer)
		}
	}
}

func (w *harness) size() (size int) {
	annotations, _ := w.at("metadata", "annotations").(map[string]any)
	for key, value := range annotations {
		size += len(key) + len(value.(string))
	}
	return size
}

var errLong = errors.New(strings.Repeat("a long story \n", 1000))

// TestSubHandlerProgress shows how the progress of many sub-handlers is stored in compact records.
func TestSubHandlerProgress(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	later := temporaryError{delay: 10 * time.Second}
	// slow returns sub-handlers that succeed, except for the first one, which fails at first.
	slow := func(failures int) func(i int) handlers.Func {
		first := fails(failures, later)
		return func(i int) handlers.Func {
			if i == 0 {
				return first
			}
			return ok
		}
	}
	run(t, map[string]scenario{
		"OneFailsForNow": {"only the failed sub-handler is retried, and the successes of all others fit",
			func(w *harness) {
				calls := callTally{}
				p := w.compact(onCreate("a", declares(2000, calls.counting(slow(2)))))
				p.step()
				w.want("named", 1999, len(w.record("a", "succeeded").([]any)))
				w.want("records", []any{"a/" + part(0)}, w.record("a", "subrefs"))
				p.settle()
				w.want("the failing one", 3, calls[0])
				_, all := calls.maxCalls()
				w.want("calls", 2002, all)
				w.wantNoRefusals(p)
				w.wantClean("all")
			}},
		"Restarted": {"a new process does not repeat finished sub-handlers", func(w *harness) {
			calls := callTally{}
			registered := onCreate("a", declares(2000, calls.counting(slow(1))))
			w.compact(registered).step()
			w.compact(registered).settle()
			_, all := calls.maxCalls()
			w.want("calls", 2001, all)
			w.wantClean("all")
		}},
		"Killed": {"a crash repeats only running sub-handlers and those that ended within the last second",
			func(w *harness) {
				calls := callTally{}
				registered := onCreate(
					"a", declares(20, calls.counting(func(int) handlers.Func { return takes(400 * time.Millisecond) })),
				)
				p := w.compact(registered)
				time.AfterFunc(4100*time.Millisecond, p.kill)
				p.settle()
				time.Sleep(time.Minute)
				w.compact(registered).settle()
				most, all := calls.maxCalls()
				if all > 20+4 || most > 2 {
					w.t.Errorf("20 sub-handlers were called %d times, one of them %d times", all, most)
				}
				w.wantClean("all")
			}},
		"FailedForGood": {"permanently failed sub-handlers keep their records with a shortened error",
			func(w *harness) {
				functions := []handlers.Func{fails(1, errors.Join(permanentError{}, errLong)), fails(1, later), ok}
				p := w.compact(onCreate("a", declares(3, func(i int) handlers.Func { return functions[i] })))
				p.step()
				w.want("named", []any{part(2)}, w.record("a", "succeeded"))
				w.want("failed", true, w.record("a."+part(0), "failure"))
				if text := w.record("a."+part(0), "message").(string); len(text) > 300 || !strings.HasPrefix(
					text, "never\na long story",
				) {
					w.t.Errorf("the message of the record is %q", text)
				}
				p.settle()
				w.wantClean("all")
			}},
		"FormerForm": {"full records of a former release are replaced by compact ones", func(w *harness) {
			calls := callTally{}
			registered := onCreate("a", declares(100, calls.counting(slow(2))))
			w.startWith(annotationStores, registered).step()
			w.want("former form", true, w.record("a."+part(7), "success"))
			time.Sleep(time.Minute)
			p := w.compact(registered)
			p.step()
			w.want("former records", nil, w.annotation(prefix+"/a."+part(7)))
			w.want("named", 99, len(w.record("a", "succeeded").([]any)))
			p.settle()
			_, all := calls.maxCalls()
			w.want("calls", 102, all)
			w.wantClean("all")
		}},
		"BackToFormerForm": {"successes in compact records are not repeated by a former release", func(w *harness) {
			calls := callTally{}
			registered := onCreate("a", declares(100, calls.counting(slow(2))))
			w.compact(registered).step()
			w.startWith(annotationStores, registered).settle()
			_, all := calls.maxCalls()
			w.want("calls", 102, all)
			w.wantClean("all")
		}},
		"Moved": {"successes in compact records are moved to another storage", func(w *harness) {
			calls := callTally{}
			registered := onCreate("a", declares(100, calls.counting(slow(3))))
			w.compact(registered).step()
			time.Sleep(time.Minute)
			w.startWith(both(statusStores, annotationStores), registered).step()
			time.Sleep(time.Minute)
			w.startWith(statusStores, registered).settle()
			_, all := calls.maxCalls()
			w.want("calls", 103, all)
			w.want("records", nil, w.at("status", "kopf", "progress", "a"))
		}},
		"Edited": {"an edit after the first success of a sub-handler is handled as an update",
			func(w *harness) {
				registered := []*handlers.Handler{onCreate("a", declares(3, slow(2))), onUpdate("u", ok)}
				w.compact(registered...).step()
				w.set("two", "spec", "field")
				time.Sleep(time.Minute)
				w.compact(registered...).step()
				w.compact(registered...).settle()
				w.wantCalls("all", "0s create a", "1m0s create a", "1m10s create a", "1m10s update u")
				w.wantClean("all")
			}},
		"EditedInFormerForm": {"an edit after a success with a full record is handled as an update", func(w *harness) {
			registered := []*handlers.Handler{onCreate("a", declares(3, slow(3))), onUpdate("u", ok)}
			w.startWith(annotationStores, registered...).step()
			w.set("two", "spec", "field")
			for range 2 {
				time.Sleep(time.Minute)
				w.compact(registered...).step()
			}
			w.compact(registered...).settle()
			w.wantCalls("all", "0s create a", "1m0s create a", "2m0s create a", "2m10s create a", "2m10s update u")
			w.wantClean("all")
		}},
		"EditedWithin": {"an edit after the success of a nested sub-handler is handled as an update", func(w *harness) {
			inner, outer := slow(2), slow(4)
			registered := []*handlers.Handler{onCreate("a", declares(2, func(i int) handlers.Func {
				if i == 0 {
					return outer(0)
				}
				return declares(2, inner)
			})), onUpdate("u", ok)}
			w.compact(registered...).step()
			w.set("two", "spec", "field")
			for range 3 {
				time.Sleep(time.Minute)
				w.compact(registered...).step()
			}
			w.compact(registered...).settle()
			w.want("calls", []string{"3m10s create a", "3m10s update u"}, w.calls()[4:])
			w.wantClean("all")
		}},
		"EditedAfterFailure": {"an edit is handled as an update even if the parent of the success failed " +
			"permanently", func(w *harness) {
			failing := func(ctx context.Context, c *handlers.Invocation) error {
				if err := c.Subs.Declare(&handlers.Handler{ID: "x", Call: ok}); err != nil {
					return err
				}
				return errors.Join(c.Subs.Run(ctx, nil), permanentError{})
			}
			registered := []*handlers.Handler{onCreate("a", failing), onCreate("b", fails(1, later)), onUpdate("u", ok)}
			w.compact(registered...).step()
			w.set("two", "spec", "field")
			w.compact(registered...).settle()
			w.wantCalls("all", "0s create a", "0s create b", "10s create b", "10s update u")
		}},
		"LargeObject": {"interim memory is reduced to a digest to make room for successes", func(w *harness) {
			calls := callTally{}
			functions := slow(2)
			p := w.compact(onUpdate("a", declares(4000, calls.counting(func(i int) handlers.Func {
				return all(takes(time.Millisecond), functions(i))
			}))))
			w.set(strings.Repeat("x", annotationsLimit*42/100), "spec", "blob")
			p.settle()
			w.set("two", "spec", "field")
			p.settle()
			_, made := calls.maxCalls()
			w.want("calls", 4002, made)
			w.wantNoRefusals(p)
			w.wantHandled("all", "two")
			w.wantClean("all")
		}},
		"Superseded": {"all sub-handlers are called again for the next cause", func(w *harness) {
			calls := callTally{}
			registered := []*handlers.Handler{on("", "a", declares(10, calls.counting(slow(2))))}
			p := w.compact(registered...)
			p.step()
			w.delete()
			p.settle()
			_, all := calls.maxCalls()
			w.want("calls", 10, all)

			w.create(object())
			p = w.compact(registered...)
			p.settle()
			w.set("two", "spec", "field")
			clear(calls)
			p.step()
			w.want("the update", 10, len(calls))
		}},
		"Nested": {"the success of a sub-handler replaces the records of its own sub-handlers", func(w *harness) {
			calls := callTally{}
			functions := calls.counting(slow(1))
			p := w.compact(onCreate("a", declares(10, func(i int) handlers.Func {
				return declares(10, func(j int) handlers.Func { return functions(10*i + j) })
			})))
			p.step()
			w.want("named", 9, len(w.record("a", "succeeded").([]any)))
			w.want("named within", 9, len(w.record("a."+part(0), "succeeded").([]any)))
			w.want("records", []any{"a/" + part(0), "a/" + part(0) + "/" + part(0)}, w.record("a", "subrefs"))
			p.settle()
			_, all := calls.maxCalls()
			w.want("calls", 101, all)
			w.wantClean("all")
		}},
	})
}
