package changes_test

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// refusing refuses the writes with the given numbers, counted from now on, with the code.
func (w *harness) refusing(code int, numbers ...int) {
	n := 0
	w.before = func(write) error {
		n++
		for _, number := range numbers {
			if n == number {
				return memapi.NewRefusal(code)
			}
		}
		return nil
	}
}

// TestRefusedContents shows how the handler whose changes are refused is found.
func TestRefusedContents(t *testing.T) {
	bad := patches("big", "spec", "size")
	cases := map[string]scenario{
		"FirstIsSilent": {"a handler without changes is not tried during the search", func(w *harness) {
			w.schema = onlyNumbers
			p := w.start(onCreate("a", ok), onCreate("b", bad, retries(2)))
			p.settle()
			w.wantCalls("all", "0s create a", "0s create b", "1m0s create b")
			w.want("errors", []error(nil), p.errs)
		}},
		"WrittenAlone": {"changes that were written during the search are not written again", func(w *harness) {
			w.schema = onlyNumbers
			counts := func(_ context.Context, c *handlers.Invocation) error {
				return c.Writer.AddTransform(func(body map[string]any) error {
					count, _ := at(body, "status", "count").(int64)
					put(body, count+1, "status", "count")
					return nil
				})
			}
			w.start(onCreate("a", counts), onCreate("b", bad, retries(2))).settle()
			w.wantAt("all", int64(1), "status", "count")
		}},
		"OutOfOrder": {"another error during the search leaves the decision to a later pass", func(w *harness) {
			w.schema = onlyNumbers
			w.refusing(403, 2)
			p := w.start(onCreate("a", bad, retries(2)), onCreate("b", bad, retries(2)))
			if _, err := p.pass(); !apierrors.IsForbidden(err) {
				w.t.Errorf("want a forbidden error, got %v", err)
			}
			w.wantWrites("all, the first", "main 422", "main 403")
			p.settle()
			w.wantCalls("all", "0s create a", "0s create b", "1m0s create a", "1m0s create b")
		}},
		"Gone": {"no handler has failed if the object ends during the search", func(w *harness) {
			w.schema = onlyNumbers
			n := 0
			w.before = func(write) error {
				if n++; n == 2 {
					w.delete()
				}
				return nil
			}
			next, err := w.start(onCreate("a", bad), onCreate("b", bad)).pass()
			w.want("gone, error", []any{true, nil}, []any{next.Gone, err})
			w.wantWrites("all, the first", "main 422", "main 404")
		}},
		"NobodyOnce": {"a refused write without changes of handlers is not repeated in the same pass",
			func(w *harness) {
				w.schema = func(map[string]any) error { return memapi.NewRefusal(422, "spec.field") }
				if _, err := w.start(onCreate("a", ok)).pass(); err == nil {
					w.t.Error("the pass succeeded, want an error")
				}
				w.wantWrites("all", "main 422")
			}},
		"AnotherCause": {"unwritten changes of a creation are not a failure of the deletion by the same handler",
			func(w *harness) {
				p := w.start(onCreate("x", bad), onDelete("x", ok))
				w.refusing(403, 2, 3)
				_, _ = p.pass()
				w.delete()
				time.Sleep(time.Second)
				w.schema = onlyNumbers
				p.settle()
				w.wantWrites(
					"finalizer, creation, retry, deletion, search, rest",
					"main 200", "main 403", "main 403", "main 422", "main 422", "main 200",
				)
				w.wantCalls("all", "0s create x", "1s delete x")
				w.want("stored", map[string]any(nil), w.stored())
			}},
		"ConditionsAlone": {"handlers' changes are written in the same pass if conditions are refused",
			func(w *harness) {
				w.withStatus()
				w.schema = func(body map[string]any) error {
					if at(body, "status", "conditions") != nil {
						return memapi.NewRefusal(422, "status.conditions")
					}
					return nil
				}
				p := w.startReporting(nil, onCreate("a", patches("x", "status", "own")))
				_, _ = p.pass()
				w.wantAt("after one pass", "x", "status", "own")
				p.wantRefusals("after one pass", false, "Unprocessable")
			}},
		"ConditionsInVain": {"accepted conditions do not hide the error of another write", func(w *harness) {
			w.withStatus()
			p := w.startReporting(nil, onUpdate("u", fails(1, temporaryError{delay: time.Hour})))
			p.settle()
			w.set("two", "spec", "field")
			_, _ = p.pass()
			w.set("one", "spec", "field")
			w.before = func(one write) error {
				if !one.status {
					return memapi.NewRefusal(403)
				}
				return nil
			}
			if _, err := p.pass(); !apierrors.IsForbidden(err) {
				w.t.Errorf("want a forbidden error, got %v", err)
			}
		}},
	}
	for name, code := range map[string]int{"BadRequest": 400, "TooLarge": 413, "Invalid": 422} {
		cases[name] = scenario{"a refused write that would fail again is a failure of the handler", func(w *harness) {
			w.before = func(one write) error {
				if at(one.patch, "spec", "size") != nil {
					return memapi.NewRefusal(code)
				}
				return nil
			}
			p := w.start(onCreate("a", bad, retries(2)), onCreate("b", ok))
			p.settle()
			w.wantCalls("all", "0s create a", "0s create b", "1m0s create a")
			w.want("errors", []error(nil), p.errs)
		}}
	}
	run(t, cases)
}

// TestSuccessesLeft shows which interim memory is kept if successes turn out to be refused.
func TestSuccessesLeft(t *testing.T) {
	bad := patches("big", "spec", "size")
	run(t, map[string]scenario{
		"Another": {"if another handler has succeeded, an edit is handled as an update", func(w *harness) {
			w.schema = onlyNumbers
			p := w.start(onCreate("a", bad, retries(2)), onCreate("b", ok), onUpdate("u", ok))
			_, _ = p.pass()
			w.want("interim", "one", at(w.annotation(interimAnnotation), "spec", "field"))
			w.set("two", "spec", "field")
			p.settle()
			w.wantCalls("all", "0s create a", "0s create b", "1m0s create a", "1m0s update u")
			w.wantHandled("all", "two")
		}},
		"Unknown": {"no interim memory is kept if a repaired record shows that no handler has succeeded",
			func(w *harness) {
				later, part := temporaryError{delay: 10 * time.Second}, prefix+"/a.t"
				_, _ = w.start(onCreate("a", runs(sub("t", fails(1, later))))).pass()
				advanceTime(10 * time.Second)
				w.schema = onlyNumbers
				breaks := does(func() { w.set("{", "metadata", "annotations", part) })
				p := w.start(
					onCreate("b", all(patches("x", "status", "b"), fails(9, later))), onCreate("a", all(breaks, bad)),
				)
				if _, err := p.pass(); err == nil || !strings.Contains(err.Error(), part) {
					w.t.Errorf("want an error that names the malformed record, got %v", err)
				}
				w.wantAt("written alone", "x", "status", "b")
				w.set(nil, "metadata", "annotations", part)
				_, _ = p.pass()
				w.want("attempts", int64(2), w.record("a", "retries"))
				w.want("interim", nil, w.annotation(interimAnnotation))
			}},
		"None": {"without a success, interim memory of another cause is removed", func(w *harness) {
			interruptUpdate(w).closeCause("three")
			w.want("interim", "two", at(w.annotation(interimAnnotation), "spec", "field"))
			w.set("four", "spec", "field")
			w.schema = onlyNumbers
			_, _ = w.start(onUpdate("u", bad), onUpdate("v", fails(9, errOrdinary))).pass()
			w.want("attempts", int64(1), w.record("u", "retries"))
			w.want("interim", nil, w.annotation(interimAnnotation))
		}},
	})
}
