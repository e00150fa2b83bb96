package changes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// children are the children that handlers wait for; a test sets whether the child exists.
type children struct {
	exists        bool
	reportedWaits []string
}

func (c *children) ShouldWake(types.UID, *handlers.Handler, string) bool { return c.exists }

func (c *children) NoteCall(_ types.UID, h *handlers.Handler, waits bool) {
	c.reportedWaits = append(c.reportedWaits, fmt.Sprintf("%s waits: %v", h.ID, waits))
}

// TestWaits shows how handlers wait for a child of their object, for at most an hour.
func TestWaits(t *testing.T) {
	waits := func(w *harness, n int) handlers.Func {
		return func(context.Context, *handlers.Invocation) error {
			if n--; n < 0 {
				return nil
			}
			return &execution.PendingError{
				Delay: time.Hour, Wait: progress.Wait{Child: "k", Until: w.started.Add(time.Hour)},
			}
		}
	}
	run(t, map[string]scenario{
		"Comes": {"a waiting handler is called when the child exists, and not before", func(w *harness) {
			known := &children{}
			p := w.start(onCreate("a", waits(w, 1)))
			p.handling.Waits = known
			_, _ = p.pass()
			_, _ = p.pass()
			w.wantCalls("without the child", "0s create a")
			known.exists = true
			p.settle()
			w.wantCalls("with the child", "0s create a")
			w.want("reported waits", []string{"a waits: true", "a waits: false"}, known.reportedWaits)
			w.wantHandled("finally", w.at("spec", "field"))
		}},
		"NobodyWatches": {"without a watch of children, a waiting handler is called in each pass", func(w *harness) {
			p := w.start(onCreate("a", waits(w, 1)))
			_, _ = p.pass()
			_, _ = p.pass()
			w.wantCalls("each pass", "0s create a", "0s create a")
		}},
		"Blocked": {"an undecodable object does not wait for a child", func(w *harness) {
			known := &children{}
			p := w.start(onCreate("a", fails(9, undecodableError{})))
			p.handling.Waits = known
			_, _ = p.pass()
			w.want("reported waits", []string{"a waits: false"}, known.reportedWaits)
		}},
		"Exit": {"a call that the exit interrupts is not reported", func(w *harness) {
			known := &children{}
			var p *process
			p = w.start(onCreate("a", func(ctx context.Context, _ *handlers.Invocation) error {
				p.exit()
				<-ctx.Done()
				return context.Cause(ctx)
			}))
			p.handling.Waits = known
			p.settle()
			w.want("reported waits", []string(nil), known.reportedWaits)
		}},
	})
}
