package changes_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// TestConditionsWithoutCalls is about passes that write something of the engine's own, and in which no handler was
// called: others may have had the last word since the handlers had theirs.
func TestConditionsWithoutCalls(t *testing.T) {
	told := func(w *world, p *telling) {
		p.settle()
		w.wantTold("told", "True", nil, nil)
		w.drainWrites()
	}
	run(t, map[string]scenario{
		"SameWrite": {"a change that no handler is for is told of with what ends it", func(w *world) {
			w.withStatus()
			p := w.tell(nil, onCreate("a", ok))
			told(w, p)
			w.set("two", "spec", "field")
			_, _ = p.pass()
			w.wantTold("after one pass", "True", nil, nil)
			w.wantHandled("it is over", "two")
			w.wantWrites("all in all", "status 200", "main 200")
		}},
		"SaidOnce": {"what was said of such a change is not said again", func(w *world) {
			w.withStatus()
			p := w.tell(nil, onCreate("a", ok))
			told(w, p)
			w.set("two", "spec", "field")
			told(w, p)
			w.set(nil, "status", "conditions")
			p.settle()
			w.wantTold("taken away", nil, nil, nil)
		}},
		"SaidByHandlers": {"after handlers, it is said once what they have come to", func(w *world) {
			w.withStatus()
			p := w.tell(nil, onCreate("a", ok))
			told(w, p)
			w.set(nil, "status", "conditions")
			told(w, p)
			w.set(nil, "status", "conditions")
			p.settle()
			w.wantTold("taken away twice", nil, nil, nil)
		}},
		"NothingToSay": {"where nothing had to be said, it can be said later", func(w *world) {
			w.withStatus()
			p := w.tell(nil, onCreate("a", ok))
			told(w, p)
			w.set("x", "metadata", "labels", "l")
			p.settle()
			w.wantWrites("a change of no generation", "main 200")
			w.set(nil, "status", "conditions")
			told(w, p)
		}},
		"Waiting": {"others may word it in their way while a handler waits for its next call", func(w *world) {
			w.withStatus()
			failing := onCreate("a", fails(1, temporaryError{delay: 10 * time.Second}))
			_, _ = w.tell(nil, failing).pass()
			w.wantTold("at work", "False", "True", nil)
			w.reword("hold on")
			w.drainWrites()
			_, _ = w.tell(nil, failing).pass()
			w.wantWrites("before the next call")
			w.want("the message", "hold on", w.condition("Ready", "message"))
		}},
		"NobodyAtWork": {"whom all waited for may not be there any more", func(w *world) {
			w.withStatus()
			succeeding := onCreate("a", ok)
			failing := onCreate("b", fails(1, temporaryError{delay: 10 * time.Second}))
			_, _ = w.tell(nil, succeeding, failing).pass()
			w.wantTold("at work", "False", "True", nil)
			w.drainWrites()
			_, _ = w.tell(nil, succeeding).pass()
			w.wantTold("without the other one", "True", nil, nil)
			w.want("the message", "all handlers have succeeded", w.condition("Ready", "message"))
			w.wantWrites("all in all", "status 200", "main 200")
		}},
		"OthersSayIt": {"that nobody is at work may be said in other ways", func(w *world) {
			w.withStatus()
			told(w, w.tell(nil))
			w.edit(func(body map[string]any) {
				list, _ := at(body, "status", "conditions").([]any)
				idle := map[string]any{"type": "Reconciling", "status": "False"}
				put(body, append(list, idle), "status", "conditions")
			})
			w.tell(nil).settle()
			w.wantWrites("another process")
			w.wantTold("as it was", "True", "False", nil)
		}},
		"Gone": {"nobody hears of an object that has ended", func(w *world) {
			w.withStatus()
			p := w.tell(nil, onUpdate("u", fails(1, temporaryError{delay: 10 * time.Second})))
			told(w, p)
			w.set("two", "spec", "field")
			_, _ = p.pass()
			w.wantTold("at work", "False", "True", nil)
			w.set("one", "spec", "field")
			w.drainWrites()
			w.before = func(write) error { w.delete(); return nil }
			p.settle()
			w.wantWrites("what is left of the change that was taken back", "main 404")
		}},
		"Interrupted": {"what the exit leaves is the next process' matter, and no refusal", func(w *world) {
			w.withStatus()
			var p *telling
			p = w.tell(nil, onCreate("a", ok), onCreate("b", func(ctx context.Context, _ *handlers.Invocation) error {
				p.exit()
				<-ctx.Done()
				return context.Cause(ctx)
			}))
			p.settle()
			w.want("record of a", true, w.record("a", "success"))
			w.wantTold("interrupted", nil, nil, nil)
			p.wantRefusals("nothing was tried", true, "")
		}},
	})
}

// reword gives the condition Ready another message, as anybody may.
func (w *world) reword(message string) {
	w.edit(func(body map[string]any) {
		list, _ := at(body, "status", "conditions").([]any)
		for _, one := range list {
			if held, ok := one.(map[string]any); ok && held["type"] == "Ready" {
				held["message"] = message
			}
		}
	})
}

// TestConditionsBesidePatches is about handlers that write to the status themselves.
func TestConditionsBesidePatches(t *testing.T) {
	run(t, map[string]scenario{
		"WholeStatus": {"who replaces the status does not take the conditions away, nor their times", func(w *world) {
			w.withStatus()
			p := w.tell(nil, onCreate("a", ok), onUpdate("u", patches(map[string]any{"own": "x"}, "status")))
			p.settle()
			since := w.condition("Ready", "lastTransitionTime")
			time.Sleep(time.Hour)
			w.set("x", "metadata", "labels", "l")
			_, _ = p.pass()
			w.wantTold("after one pass", "True", nil, nil)
			w.wantAt("what the handler says is kept", "x", "status", "own")
			w.want("ready since", since, w.condition("Ready", "lastTransitionTime"))
		}},
		"EachReason": {"each handler that cannot be called has its own reason", func(w *world) {
			w.withStatus()
			_, _ = w.tell(nil,
				onCreate("a", fails(9, undecodableError{})), onCreate("b", fails(9, otherUndecodableError{})),
			).pass()
			text, _ := w.condition("Ready", "message").(string)
			for _, part := range []string{
				`handler "a" waits until the object is changed: spec.field: not a number`,
				`handler "b" waits until the object is changed: spec.field: not a date`,
			} {
				if strings.Count(text, part) != 1 {
					w.t.Errorf("the message: %q, want %q in it", text, part)
				}
			}
		}},
		"SubHandlers": {"a handler speaks for its sub-handlers", func(w *world) {
			w.withStatus()
			later := temporaryError{delay: 10 * time.Second}
			p := w.tell(nil, onCreate("a", runs(sub("s", fails(1, later)))), onCreate("b", fails(1, later)))
			_, _ = p.pass()
			w.wantTold("at work", "False", "True", nil)
			text, _ := w.condition("Ready", "message").(string)
			if strings.Contains(text, "a/s") || !strings.Contains(text, `"a"`) || !strings.Contains(text, `"b"`) {
				w.t.Errorf("the message: %q, want those of a and b", text)
			}
			p.settle()
			w.wantTold("in the end", "True", nil, nil)
		}},
		"NotSelected": {"nothing is said of a handler that is not for the object any more", func(w *world) {
			w.withStatus()
			w.set("yes", "metadata", "labels", "on")
			later := temporaryError{delay: 10 * time.Second}
			p := w.tell(nil, onCreate("a", fails(1, later), labelled), onCreate("b", fails(2, later)))
			_, _ = p.pass()
			w.set(nil, "metadata", "labels")
			time.Sleep(10 * time.Second)
			_, _ = p.pass()
			w.wantTold("without a", "False", "True", nil)
			w.want("the message", `handler "b", attempt 2: not yet`, w.condition("Ready", "message"))
		}},
	})
}

type otherUndecodableError struct{ undecodableError }

func (otherUndecodableError) Error() string { return "spec.field: not a date" }
