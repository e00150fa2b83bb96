package changes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// TestTooManySubHandlers shows the handling of more sub-handlers than an object has room for (deviation D-bounds).
func TestTooManySubHandlers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	forms := map[string]func(w *harness, registered ...*handlers.Handler) *process{
		"Compact": (*harness).compact,
		"Kopf": func(w *harness, registered ...*handlers.Handler) *process {
			return w.startWith(annotationStores, registered...)
		},
		"KopfStatus": func(w *harness, registered ...*handlers.Handler) *process {
			return w.startWith(statusStores, registered...)
		},
	}
	later := temporaryError{delay: 10 * time.Second}
	for form, start := range forms {
		run(t, map[string]scenario{
			form +
				"TooMany": {"the number of fitting sub-handlers is logged at once, they are called once, and other " +
				"handlers are not delayed", func(w *harness) {
				const many = 22_000
				calls := callTally{}
				slow := fails(1, later)
				p := start(w, onCreate("a", declares(many, calls.counting(func(i int) handlers.Func {
					if i == 0 {
						return slow
					}
					return ok
				}))), onCreate("b", ok))
				p.step()
				first, said := len(calls), slices.Clone(w.logLines)
				w.wantCalls("first", "0s create a", "0s create b")
				p.settle()
				if again := w.calls(); len(again) > 3 {
					w.t.Errorf("want at most 3 calls of the handler, got %v", again)
				}
				fitting := len(calls)
				if fitting < 1000 || fitting == many || first < fitting*4/5 {
					w.t.Errorf("%d sub-handlers fit, %d of them were called at once", fitting, first)
				}
				promised := 0
				for _, line := range said {
					if _, after, ok := strings.Cut(line, "room for the progress of "); ok {
						_, _ = fmt.Sscan(strings.TrimSuffix(strings.Fields(after)[0], `"`), &promised)
					}
				}
				if promised < fitting*4/5 || promised > fitting*103/100 {
					w.t.Errorf("the log line says that %d fit, but %d do", promised, fitting)
				}
				_, all := calls.maxCalls()
				w.want("calls", fitting+1, all)
				w.wantNoRefusals(p)
				if !w.hasLogged("failed permanently", "not called") {
					w.t.Error("the failure of the handler is not logged")
				}
			}},
			form +
				"AllFail": {"the records of many failing sub-handlers with long errors fit, and all are " +
				"called", func(w *harness) {
				const many = 700
				calls, largest := callTally{}, 0
				p := start(w, onCreate("a", declares(many, calls.counting(func(i int) handlers.Func {
					return func(context.Context, *handlers.Invocation) error {
						if calls[i] < 3 {
							return errors.Join(later, errLong)
						}
						return nil
					}
				}))))
				w.after = func(write) error { largest = max(largest, w.size()); return nil }
				p.settle()
				most, all := calls.maxCalls()
				w.want("calls", []int{3, 3 * many}, []int{most, all})
				w.wantNoRefusals(p)
				w.wantClean("all")
				if len(p.requeueDelays) > 40 {
					w.t.Errorf("want at most 40 delays, got %d: %v", len(p.requeueDelays),
						slices.Compact(p.requeueDelays))
				}
			}},
		})
	}
}
