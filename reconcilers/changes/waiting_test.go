package changes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// children are those that handlers wait for: it is on the test to say when one is there.
type children struct {
	there bool
	told  []string
}

func (c *children) Awake(types.UID, *handlers.Handler, string) bool { return c.there }

func (c *children) Called(_ types.UID, h *handlers.Handler, waits bool) {
	c.told = append(c.told, fmt.Sprintf("%s waits: %v", h.ID, waits))
}

// TestWaits is about handlers that wait for a child of their object, for an hour at most.
func TestWaits(t *testing.T) {
	waits := func(w *world, n int) handlers.Func {
		return func(context.Context, *handlers.Invocation) error {
			if n--; n < 0 {
				return nil
			}
			return &execution.PendingError{
				Delay: time.Hour, Awaited: progress.Wait{Child: "k", Until: w.started.Add(time.Hour)},
			}
		}
	}
	run(t, map[string]scenario{
		"Comes": {"it is called when the child is there, and not before", func(w *world) {
			known := &children{}
			p := w.start(onCreate("a", waits(w, 1)))
			p.handling.Waits = known
			_, _ = p.pass()
			_, _ = p.pass()
			w.wantCalls("the child is not there", "0s create a")
			known.there = true
			p.settle()
			w.wantCalls("it is", "0s create a")
			w.want("what was told of its calls", []string{"a waits: true", "a waits: false"}, known.told)
			w.wantHandled("in the end", w.at("spec", "field"))
		}},
		"NobodyWatches": {"where nothing is known of children, the handler looks itself", func(w *world) {
			p := w.start(onCreate("a", waits(w, 1)))
			_, _ = p.pass()
			_, _ = p.pass()
			w.wantCalls("each pass", "0s create a", "0s create a")
		}},
		"Blocked": {"one that cannot be called does not wait", func(w *world) {
			known := &children{}
			p := w.start(onCreate("a", fails(9, undecodableError{})))
			p.handling.Waits = known
			_, _ = p.pass()
			w.want("what was told", []string{"a waits: false"}, known.told)
		}},
		"Exit": {"what the exit interrupts is not over", func(w *world) {
			known := &children{}
			var p *process
			p = w.start(onCreate("a", func(ctx context.Context, _ *handlers.Invocation) error {
				p.exit()
				<-ctx.Done()
				return context.Cause(ctx)
			}))
			p.handling.Waits = known
			p.settle()
			w.want("what was told", []string(nil), known.told)
		}},
	})
}
