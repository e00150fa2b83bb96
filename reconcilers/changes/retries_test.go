package changes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// TestRetries shows when handlers are retried after attempts without success.
func TestRetries(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		"Ordinary": {"an ordinary error is retried after the backoff, 60 seconds by default", func(w *harness) {
			w.start(onCreate("a", fails(2, errOrdinary))).settle()
			w.wantCalls("all", "0s create a", "1m0s create a", "2m0s create a")
			w.wantWrites("one for each attempt", "main 200", "main 200", "main 200")
			w.wantClean("finally")
		}},
		"OperatorBackoff": {"the operator's backoff applies to handlers without their own", func(w *harness) {
			p := w.start(
				onCreate("a", fails(1, errOrdinary)), onCreate("b", fails(1, errOrdinary), backoff(3*time.Second)),
			)
			p.handling.Backoff = 20 * time.Second
			p.settle()
			w.wantCalls("all", "0s create a", "0s create b", "3s create b", "20s create a")
		}},
		"Temporary": {"a temporary error is retried after its own delay, and other handlers do not wait for it",
			func(w *harness) {
				w.start(onCreate("a", fails(1, later)), onCreate("b", ok)).settle()
				w.wantCalls("all", "0s create a", "0s create b", "10s create a")
				w.wantWrites("all", "main 200", "main 200")
			}},
		"ZeroDelay": {"a delay of zero is retried at once", func(w *harness) {
			w.start(onCreate("a", fails(3, temporaryError{}))).settle()
			w.wantCalls("all", "0s create a", "0s create a", "0s create a", "0s create a")
		}},
		// Deviation D-negative-delay.
		"NegativeDelay": {"a negative delay is retried at once", func(w *harness) {
			w.start(onCreate("a", fails(1, temporaryError{delay: -1}))).settle()
			w.wantCalls("all", "0s create a", "0s create a")
		}},
		"Permanent": {"a permanent error ends only its handler, and the cause is closed", func(w *harness) {
			w.start(
				onCreate("a", fails(9, permanentError{})), onCreate("b", ok), onDelete("d", fails(9, permanentError{})),
			).settle()
			w.wantCalls("creation", "0s create a", "0s create b")
			w.wantHandled("creation", "one")
			w.delete()
			w.start(onDelete("d", fails(9, permanentError{}))).settle()
			w.wantCalls("deletion", "0s delete d")
			w.want("stored", map[string]any(nil), w.stored())
		}},
		"Modes": {"the errors mode decides whether an ordinary error is ignored, permanent or retried",
			func(w *harness) {
				w.start(
					onCreate("ignored", all(returns("r"), fails(9, errOrdinary)), mode(handlers.ErrorsIgnored)),
					onCreate("permanent", fails(9, errOrdinary), mode(handlers.ErrorsPermanent)),
					onCreate("temporary", fails(1, errOrdinary), mode(handlers.ErrorsTemporary)),
					onCreate("later", fails(1, later), mode(handlers.ErrorsPermanent)),
				).settle()
				w.wantCalls("all", "0s create ignored", "0s create permanent", "0s create temporary", "0s create later",
					"10s create later", "1m0s create temporary")
			}},
		"Limit": {"a handler with N retries is called at most N times", func(w *harness) {
			w.start(onCreate("a", fails(9, later), retries(3)), onCreate("b", ok, retries(0))).settle()
			w.wantCalls("all", "0s create a", "10s create a", "20s create a")
			w.wantHandled("all", "one")
			w.wantClean("all")
		}},
		"Timeout": {"the timeout counts from the first selection, and no attempt is delayed beyond it",
			func(w *harness) {
				w.start(onCreate("a", fails(9, later), timeout(25*time.Second))).settle()
				w.wantCalls("all", "0s create a", "10s create a", "20s create a")
				w.wantHandled("all", "one")
			}},
		"TimeoutCancels": {"the timeout cancels a running call", func(w *harness) {
			w.start(onCreate("a", takes(time.Hour), timeout(5*time.Second)), onCreate("b", ok)).settle()
			w.wantCalls("all", "0s create a", "5s create b")
			w.wantHandled("all", "one")
		}},
		"Panic": {"a panic is retried like an ordinary error", func(w *harness) {
			first := true
			w.start(onCreate("a", func(context.Context, *handlers.Invocation) error {
				if first {
					first = false
					panic("boom")
				}
				return nil
			}, backoff(time.Second)), onCreate("b", ok)).settle()
			w.wantCalls("all", "0s create a", "0s create b", "1s create a")
		}},
		"Kills": {"delays and attempts are stored on the object and survive crashes", func(w *harness) {
			for life := range 3 {
				p := w.start(onCreate("a", fails(9, later), retries(3)))
				if _, err := p.pass(); err != nil {
					w.t.Fatalf("life %d: %v", life, err)
				}
				p.kill()
				if life < 2 {
					w.want("attempts", int64(life+1), w.record("a", "retries"))
					w.want("message", "not yet", w.record("a", "message"))
				}
				again := w.start(onCreate("a", ok, retries(3)))
				next, _ := again.pass()
				w.want("too early", life < 2, next.RequeueAfter != nil && *next.RequeueAfter == 10*time.Second)
				again.kill()
				time.Sleep(10 * time.Second)
			}
			w.wantCalls("all", "0s create a", "10s create a", "20s create a")
			w.wantHandled("all", "one")
		}},
		"TimeoutOverKills": {"the timeout continues while the operator is down", func(w *harness) {
			p := w.start(onCreate("a", fails(9, later), timeout(time.Minute)))
			_, _ = p.pass()
			p.kill()
			time.Sleep(time.Hour)
			w.start(onCreate("a", ok, timeout(time.Minute))).settle()
			w.wantCalls("all", "0s create a")
			w.wantHandled("all", "one")
		}},
		"NextIsEarliest": {"the next pass is due with the earliest retry", func(w *harness) {
			p := w.start(onCreate("a", fails(1, temporaryError{20 * time.Second})), onCreate("b", fails(1, later)))
			_, _ = p.pass()
			next, err := p.pass()
			if err != nil || next.RequeueAfter == nil {
				w.t.Fatalf("want a delay, got nil, error %v", err)
			}
			w.want("delay", 10*time.Second, *next.RequeueAfter)
			w.wantCalls("all", "0s create a", "0s create b")
		}},
		"ClockSetBack": {"a due handler is called even if the clock is set back before its turn",
			func(w *harness) {
				var back time.Duration
				first := fails(1, later)
				slow := func(ctx context.Context, c *handlers.Invocation) error {
					err := first(ctx, c)
					if err == nil {
						back = time.Hour
					}
					return err
				}
				p := w.start(onCreate("a", slow), onCreate("b", fails(1, later), retries(2)))
				p.handling.Clock = func() time.Time { return time.Now().UTC().Add(-back) }
				p.settle()
				w.wantCalls("all", "0s create a", "0s create b", "10s create a", "10s create b")
				w.wantHandled("all", "one")
			}},
		"SameSubHandlerID": {"two sub-handlers with the same full id are both called",
			func(w *harness) {
				var calls []string
				noted := func(name string) handlers.Func {
					return func(context.Context, *handlers.Invocation) error { calls = append(calls, name); return nil }
				}
				inner := &handlers.Handler{ID: "t", Call: noted("inner")}
				w.start(onCreate("a", runs(
					&handlers.Handler{ID: "s", Call: runs(inner)}, &handlers.Handler{ID: "s/t", Call: noted("outer")},
				))).settle()
				w.want("sub-handlers", []string{"inner", "outer"}, calls)
				w.wantCalls("all", "0s create a")
			}},
		"LongMessage": {"an error message larger than the annotations does not prevent the retry", func(w *harness) {
			long := fmt.Errorf("answer: %s", strings.Repeat("x", annotationsLimit))
			p := w.start(onCreate("a", fails(1, long)))
			p.settle()
			w.wantCalls("all", "0s create a", "1m0s create a")
			w.wantWrites("all", "main 200", "main 200")
		}},
	})
}
