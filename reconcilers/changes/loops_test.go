package changes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// counts returns a handler that writes a higher number with each call.
func counts(path ...string) handlers.Func {
	n := 0
	return func(_ context.Context, c *handlers.Invocation) error {
		n++
		value := fmt.Sprint(n)
		return c.Writer.AddTransform(func(body map[string]any) error { put(body, value, path...); return nil })
	}
}

// changesOf makes a handler react to changes of one field.
func changesOf(path ...string) option {
	return func(h *handlers.Handler) { h.Field, h.NeedsChange = diff.Path(path), true }
}

// passFor makes passes for the given time.
func (p *process) passFor(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
		if p.step() {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		time.Sleep(10 * time.Millisecond) // the duration of a request
	}
}

// callsOf counts the calls of one handler in a journal.
func callsOf(journal []string, id string) (n int) {
	for _, line := range journal {
		if strings.HasSuffix(line, " "+id) {
			n++
		}
	}
	return n
}

// TestLoopsByOwnWrites shows that a handler whose own change calls it again is logged once, and called with growing
// delays (deviation D-own-loops).
func TestLoopsByOwnWrites(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	const line = "Handlers change the object each time that their own change calls them"
	lines := func(w *harness) int { return strings.Count(strings.Join(w.logLines, "\n"), line) }
	run(t, map[string]scenario{
		"OneHandler": {"a handler that calls itself is delayed by 1, 2, 4, 8, 16 and 32 seconds after its first " +
			"calls", func(w *harness) {
			p := w.start(onUpdate("u", counts("spec", "at")))
			p.settle()
			w.set("two", "spec", "field")
			w.calls()
			w.drainWrites()
			p.passFor(time.Minute)
			all := w.calls()
			w.want("calls", 11+5, callsOf(all, "u"))
			w.want("writes", 11+5, len(w.drainWrites()))
			w.want("lines", 1, lines(w))
			w.want("named", true, w.hasLogged(line, `"handlers"=["u"]`, `"fields"=["spec.at"]`))
			w.want("kept", false, p.memory.IsEmpty())
		}},
		"PingPong": {"two handlers whose changes call each other are logged as one loop", func(w *harness) {
			p := w.start(onUpdate("a", counts("spec", "b"), changesOf("spec", "a")),
				onUpdate("b", counts("spec", "a"), changesOf("spec", "b")))
			p.settle()
			w.set("two", "spec", "a")
			p.passFor(time.Minute)
			if n := len(w.calls()); n > 20 {
				w.t.Errorf("%d calls in a minute", n)
			}
			w.want("lines", 1, lines(w))
		}},
		"OthersAreNotDelayed": {"a loop does not delay handlers for the edits of other clients", func(w *harness) {
			p := w.start(onUpdate("u", counts("spec", "at")), onUpdate("other", ok))
			p.settle()
			w.set("two", "spec", "field")
			p.passFor(time.Minute)
			_, _ = p.pass()
			_, _ = p.pass() // during the next delay
			time.Sleep(time.Second)
			w.calls()
			at := time.Since(w.started)
			w.set("three", "spec", "field")
			_, _ = p.pass()
			w.wantCalls("edited", fmt.Sprintf("%s update u", at))
			_, _ = p.pass()
			w.wantCalls("all changes that it has not seen", fmt.Sprintf("%s update other", at))
		}},
		"Ended": {"the loop is forgotten when the handler stops changing the object", func(w *harness) {
			loops := true
			write := counts("spec", "at")
			p := w.start(onUpdate("u", func(ctx context.Context, c *handlers.Invocation) error {
				if loops {
					return write(ctx, c)
				}
				return nil
			}))
			p.settle()
			w.set("two", "spec", "field")
			p.passFor(time.Minute)
			loops = false
			p.passFor(2 * time.Minute)
			w.want("idle", true, p.memory.IsEmpty())
			w.wantClean("idle")
		}},
		"Settling": {"a handler that completes each edit of another client is not a loop", func(w *harness) {
			p := w.start(onUpdate("u", func(_ context.Context, c *handlers.Invocation) error {
				return c.Writer.AddTransform(func(body map[string]any) error {
					put(body, at(body, "spec", "field"), "spec", "copy")
					return nil
				})
			}))
			p.settle()
			w.calls()
			for i := range 100 {
				w.set(fmt.Sprint(i), "spec", "field")
				p.settle()
			}
			w.want("calls", 200, len(w.calls()))
			w.want("lines", 0, lines(w))
			w.want("sleeps", []time.Duration(nil), p.requeueDelays)
			w.want("idle", true, p.memory.IsEmpty())
		}},
	})
}
