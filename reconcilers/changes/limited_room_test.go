package changes_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

const othersAnnotation = "others.example.org/blob"

// leaveRoom fills the annotations of others until the operator has the given number of bytes.
func (w *harness) leaveRoom(bytes int) {
	w.set(nil, "metadata", "annotations", othersAnnotation)
	text := strings.Repeat("x", annotationsLimit-w.size()-len(othersAnnotation)-bytes)
	w.set(text, "metadata", "annotations", othersAnnotation)
}

// TestFewPlaces shows which sub-handlers are called if the object has room for the progress of only a few; almost 4
// KiB stay free.
func TestFewPlaces(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		"AllFail": {"failed sub-handlers keep their room, and the last ones are called later", func(w *harness) {
			w.leaveRoom(8000)
			const many = 30
			calls, largest := callTally{}, 0
			p := w.compact(onCreate("a", declares(many, calls.counting(func(i int) handlers.Func {
				return func(context.Context, *handlers.Invocation) error {
					if calls[i] < 2 {
						return errors.Join(later, errLong)
					}
					return nil
				}
			}))))
			w.after = func(write) error { largest = max(largest, w.size()); return nil }
			p.step()
			if first := len(calls); first < 5 || first > 9 || calls[0] != 1 || calls[first-1] != 1 {
				w.t.Errorf("the first pass calls the first sub-handlers, as many as fit: %v", calls)
			}
			p.settle()
			most, all := calls.maxCalls()
			w.want("calls", []int{2, 2 * many}, []int{most, all})
			w.wantNoRefusals(p)
			if used := largest - (annotationsLimit - 8000); used < 3000 || used > 4400 {
				w.t.Errorf("%d bytes were used at most", used)
			}
		}},
		"OneMore": {"a sub-handler that is declared later gets room beside the earlier ones", func(w *harness) {
			slow := sub("s", fails(1, later))
			w.compact(onCreate("a", w.steps(nil, slow))).step()
			w.wantCalls("the only one", "0s create a", "0s create s")
			time.Sleep(10 * time.Second)
			_, _ = w.compact(onCreate("a", w.steps(nil, slow, sub("t", ok)))).pass()
			w.wantCalls("both", "10s create a", "10s create s", "10s create t")
		}},
		"OneByOne": {"a sub-handler without room does not block the next one", func(w *harness) {
			lifecycle := handlers.OneByOne
			slow, next := sub("s", fails(1, errors.Join(later, errLong))), sub("first", ok)
			w.leaveRoom(5100)
			p := w.compact(onCreate("a", w.steps(&lifecycle, slow)))
			p.step()
			w.wantCalls("the only one", "0s create a", "0s create s")
			w.leaveRoom(4400)
			time.Sleep(10 * time.Second)
			p = w.compact(onCreate("a", w.steps(&lifecycle, next, slow)))
			p.step()
			w.wantCalls("no room for the first one", "10s create a", "10s create s")
			p.settle()
			w.wantCalls("room for the first one", "10s create a", "10s create first")
		}},
	})
}
