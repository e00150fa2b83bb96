package changes_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// TestDependencyCourses shows how dependent sub-handlers behave during refusals, restarts and deletions.
func TestDependencyCourses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		"RefusedMeanwhile": {"a dependent waits again if the changes of its dependency are refused",
			func(w *harness) {
				w.schema = onlyNumbers
				value := any("big")
				p := w.compact(onCreate("p", w.steps(nil, sub("a", func(
					ctx context.Context, c *handlers.Invocation,
				) error {
					defer func() { value = int64(5) }()
					return patches(value, "spec", "size")(ctx, c)
				}), sub("b", takes(5*time.Second)), sub("c", ok, afterSuccess("a")), sub("d", ok, afterSuccess("c")))))
				p.settle()
				w.wantCalls("all", "0s create p", "0s create a", "0s create b", "1m1s create p", "1m1s create a",
					"1m1s create c", "1m1s create d")
				w.wantClean("all")
			}},
		"Exit": {"the next process continues with the interrupted sub-handler", func(w *harness) {
			registered := onCreate("p", w.steps(nil, sub("a", takes(2*time.Second)),
				sub("b", takes(5*time.Second), afterSuccess("a")), sub("c", ok, afterSuccess("b"))))
			p := w.compact(registered)
			time.AfterFunc(3*time.Second, p.exit)
			p.settle()
			time.Sleep(time.Minute)
			w.compact(registered).settle()
			w.wantCalls("all", "0s create p", "0s create a", "2s create b", "1m3s create p", "1m3s create b",
				"1m8s create c")
			w.wantClean("all")
		}},
		"Stages": {"a sub-handler of an earlier Run is a valid dependency", func(w *harness) {
			flaky := fails(1, later)
			p := w.compact(onCreate("p", all(w.steps(nil, sub("a", ok)),
				w.steps(nil, sub("b", flaky, afterSuccess("a"))), w.steps(nil, sub("c", ok, afterSuccess("b", "a"))))))
			p.settle()
			w.wantCalls("all", "0s create p", "0s create a", "0s create b", "10s create p", "10s create b",
				"10s create c")
			w.wantClean("all")
		}},
		"Deleted": {"sub-handlers of a deletion are called in the order of their dependencies", func(w *harness) {
			p := w.compact(onDelete("p", w.steps(nil, sub("b", ok, afterSuccess("a")), sub("a", fails(1, later)))))
			p.settle()
			w.delete()
			p.settle()
			w.wantCalls("all", "0s delete p", "0s delete a", "10s delete p", "10s delete a", "10s delete b")
			w.want("gone", true, p.gone)
		}},
		"Field": {"dependencies work in a handler whose id contains its field", func(w *harness) {
			h := on("", "p/spec.field", w.steps(nil, sub("b", ok, afterSuccess("a")), sub("a", fails(1, later))))
			h.Field = diff.Path{"spec", "field"}
			w.compact(h).settle()
			w.wantCalls("all", "0s create p/spec.field", "0s create a", "10s create p/spec.field", "10s create a",
				"10s create b")
		}},
		"Shuffled": {"a shuffled order respects all dependencies", func(w *harness) {
			lifecycle := handlers.Shuffled
			for range 20 {
				w.create(object())
				w.compact(onCreate("p", w.steps(&lifecycle, sub("d", ok, afterSuccess("c", "b")),
					sub("c", ok, afterSuccess("a")), sub("b", ok), sub("a", ok), sub("e", ok, afterEnd("d"))))).settle()
				calls := each(w.calls(), ending)
				at := func(id string) int { return slices.Index(calls, id) }
				if len(calls) != 6 || at("c") < at("a") || at("d") < max(at("c"), at("b")) || at("e") < at("d") {
					w.t.Errorf("calls in the order %v", calls)
				}
			}
		}},
		"Concurrent": {"records of sub-handlers can be read from any goroutine at any time", func(w *harness) {
			var asking sync.WaitGroup
			w.compact(onCreate("p", func(ctx context.Context, c *handlers.Invocation) error {
				ask := func(context.Context, *handlers.Invocation) error {
					for i := range 50 {
						asking.Go(func() { _, _ = c.Subs.RecordOf(part(i % 5)) })
					}
					return nil
				}
				return all(ask, declares(5, func(int) handlers.Func { return ask }), ask)(ctx, c)
			})).settle()
			asking.Wait()
			w.wantClean("all")
		}},
		"AllAtOnce": {"a finished dependency starts no more dependents than the object has room for", func(w *harness) {
			const many = 1500
			calls := callTally{}
			work := calls.counting(func(int) handlers.Func { return takes(10 * time.Millisecond) })
			p := w.compact(onCreate("p", func(ctx context.Context, c *handlers.Invocation) error {
				err := c.Subs.Declare(sub("first", ok))
				for i := 0; i < many && err == nil; i++ {
					err = c.Subs.Declare(sub(part(i), work(i), afterSuccess("first"), timeout(time.Hour)))
				}
				return err
			}))
			p.settle()
			most, called := calls.maxCalls()
			w.want("calls", []int{1, many}, []int{most, called})
			w.wantNoRefusals(p)
			w.wantClean("all")
		}},
	})
}
