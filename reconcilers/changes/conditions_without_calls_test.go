package changes_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// TestConditionsWithoutCalls shows which conditions are written by passes that call no handler: other clients may have
// changed the conditions since the last call.
func TestConditionsWithoutCalls(t *testing.T) {
	told := func(w *harness, p *conditionsProcess) {
		p.settle()
		w.wantConditions("written", "True", nil, nil)
		w.drainWrites()
	}
	run(t, map[string]scenario{
		"SameWrite": {"a change without a handler is reported in the pass that ends it", func(w *harness) {
			w.withStatus()
			p := w.startReporting(nil, onCreate("a", ok))
			told(w, p)
			w.set("two", "spec", "field")
			_, _ = p.pass()
			w.wantConditions("after one pass", "True", nil, nil)
			w.wantHandled("the change is finished", "two")
			w.wantWrites("one pass", "status 200", "main 200")
		}},
		"SaidOnce": {"conditions for a change without a handler are written once and not restored", func(w *harness) {
			w.withStatus()
			p := w.startReporting(nil, onCreate("a", ok))
			told(w, p)
			w.set("two", "spec", "field")
			told(w, p)
			w.set(nil, "status", "conditions")
			p.settle()
			w.wantConditions("removed by another client", nil, nil, nil)
		}},
		"SaidByHandlers": {"conditions after the last handler are restored once", func(w *harness) {
			w.withStatus()
			p := w.startReporting(nil, onCreate("a", ok))
			told(w, p)
			w.set(nil, "status", "conditions")
			told(w, p)
			w.set(nil, "status", "conditions")
			p.settle()
			w.wantConditions("removed twice", nil, nil, nil)
		}},
		"NothingToSay": {"removed conditions are written later if the last change did not need them", func(w *harness) {
			w.withStatus()
			p := w.startReporting(nil, onCreate("a", ok))
			told(w, p)
			w.set("x", "metadata", "labels", "l")
			p.settle()
			w.wantWrites("a change without a new generation", "main 200")
			w.set(nil, "status", "conditions")
			told(w, p)
		}},
		"Waiting": {"the message of another client is kept while a handler waits for its next attempt",
			func(w *harness) {
				w.withStatus()
				failing := onCreate("a", fails(1, temporaryError{delay: 10 * time.Second}))
				_, _ = w.startReporting(nil, failing).pass()
				w.wantConditions("a retry is due", "False", "True", nil)
				w.replaceReadyMessage("hold on")
				w.drainWrites()
				_, _ = w.startReporting(nil, failing).pass()
				w.wantWrites("before the next call")
				w.want("the message", "hold on", w.condition("Ready", "message"))
			}},
		"NobodyAtWork": {"an object becomes ready when its unfinished handler is no longer registered",
			func(w *harness) {
				w.withStatus()
				succeeding := onCreate("a", ok)
				failing := onCreate("b", fails(1, temporaryError{delay: 10 * time.Second}))
				_, _ = w.startReporting(nil, succeeding, failing).pass()
				w.wantConditions("a retry is due", "False", "True", nil)
				w.drainWrites()
				_, _ = w.startReporting(nil, succeeding).pass()
				w.wantConditions("without the failing handler", "True", nil, nil)
				w.want("the message", "all handlers have succeeded", w.condition("Ready", "message"))
				w.wantWrites("the second pass", "status 200", "main 200")
			}},
		"OthersSayIt": {"Reconciling=False of another client is not removed", func(w *harness) {
			w.withStatus()
			told(w, w.startReporting(nil))
			w.edit(func(body map[string]any) {
				list, _ := at(body, "status", "conditions").([]any)
				idle := map[string]any{"type": "Reconciling", "status": "False"}
				put(body, append(list, idle), "status", "conditions")
			})
			w.startReporting(nil).settle()
			w.wantWrites("another process")
			w.wantConditions("unchanged", "True", "False", nil)
		}},
		"Gone": {"no conditions are written for an object that was deleted", func(w *harness) {
			w.withStatus()
			p := w.startReporting(nil, onUpdate("u", fails(1, temporaryError{delay: 10 * time.Second})))
			told(w, p)
			w.set("two", "spec", "field")
			_, _ = p.pass()
			w.wantConditions("a retry is due", "False", "True", nil)
			w.set("one", "spec", "field")
			w.drainWrites()
			w.before = func(write) error { w.delete(); return nil }
			p.settle()
			w.wantWrites("the write for the reverted change", "main 404")
		}},
		"Interrupted": {"no conditions are written or reported as refused if the exit interrupts", func(w *harness) {
			w.withStatus()
			var p *conditionsProcess
			p = w.startReporting(nil,
				onCreate("a", ok), onCreate("b", func(ctx context.Context, _ *handlers.Invocation) error {
					p.exit()
					<-ctx.Done()
					return context.Cause(ctx)
				}))
			p.settle()
			w.want("record of a", true, w.record("a", "success"))
			w.wantConditions("interrupted", nil, nil, nil)
			p.wantRefusals("nothing was written", true, "")
		}},
	})
}

// replaceReadyMessage replaces the message of the Ready condition, as any client may do.
func (w *harness) replaceReadyMessage(message string) {
	w.edit(func(body map[string]any) {
		list, _ := at(body, "status", "conditions").([]any)
		for _, one := range list {
			if held, ok := one.(map[string]any); ok && held["type"] == "Ready" {
				held["message"] = message
			}
		}
	})
}

// TestConditionsBesidePatches shows which conditions an object gets if handlers write to the status themselves.
func TestConditionsBesidePatches(t *testing.T) {
	run(t, map[string]scenario{
		"WholeStatus": {"a handler that replaces the status keeps the conditions and their times", func(w *harness) {
			w.withStatus()
			p := w.startReporting(nil, onCreate("a", ok), onUpdate("u", patches(map[string]any{"own": "x"}, "status")))
			p.settle()
			since := w.condition("Ready", "lastTransitionTime")
			time.Sleep(time.Hour)
			w.set("x", "metadata", "labels", "l")
			_, _ = p.pass()
			w.wantConditions("after one pass", "True", nil, nil)
			w.wantAt("the status of the handler", "x", "status", "own")
			w.want("ready since", since, w.condition("Ready", "lastTransitionTime"))
		}},
		"EachReason": {"each blocked handler is listed with its own reason", func(w *harness) {
			w.withStatus()
			_, _ = w.startReporting(nil,
				onCreate("a", fails(9, undecodableError{})), onCreate("b", fails(9, otherUndecodableError{})),
			).pass()
			text, _ := w.condition("Ready", "message").(string)
			for _, part := range []string{
				`handler "a" waits until the object is changed: spec.field: not a number`,
				`handler "b" waits until the object is changed: spec.field: not a date`,
			} {
				if strings.Count(text, part) != 1 {
					w.t.Errorf("the message: %q, want %q in it once", text, part)
				}
			}
		}},
		"SubHandlers": {"the message names a handler, but not its sub-handlers", func(w *harness) {
			w.withStatus()
			later := temporaryError{delay: 10 * time.Second}
			p := w.startReporting(nil, onCreate("a", runs(sub("s", fails(1, later)))), onCreate("b", fails(1, later)))
			_, _ = p.pass()
			w.wantConditions("a retry is due", "False", "True", nil)
			text, _ := w.condition("Ready", "message").(string)
			if strings.Contains(text, "a/s") || !strings.Contains(text, `"a"`) || !strings.Contains(text, `"b"`) {
				w.t.Errorf("the message: %q, want a and b without a/s", text)
			}
			p.settle()
			w.wantConditions("finally", "True", nil, nil)
		}},
		"NotSelected": {"the message does not name a handler that does not match the object any more",
			func(w *harness) {
				w.withStatus()
				w.set("yes", "metadata", "labels", "on")
				later := temporaryError{delay: 10 * time.Second}
				p := w.startReporting(nil, onCreate("a", fails(1, later), ifLabelled), onCreate("b", fails(2, later)))
				_, _ = p.pass()
				w.set(nil, "metadata", "labels")
				time.Sleep(10 * time.Second)
				_, _ = p.pass()
				w.wantConditions("without a", "False", "True", nil)
				w.want("the message", `handler "b", attempt 2: not yet`, w.condition("Ready", "message"))
			}},
	})
}

type otherUndecodableError struct{ undecodableError }

func (otherUndecodableError) Error() string { return "spec.field: not a date" }
