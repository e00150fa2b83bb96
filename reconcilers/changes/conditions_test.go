package changes_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// TestConditions is about what objects tell of their handlers, and when.
func TestConditions(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		"Success": {"who looks at the object knows when all is done", func(w *world) {
			w.withStatus()
			w.tell(nil, onCreate("a", ok)).settle()
			w.wantTold("in the end", "True", nil, nil)
			w.wantWrites("it is written with the outcome", "status 200", "main 200")
		}},
		"Retry": {"and when something is to come, with the reason", func(w *world) {
			w.withStatus()
			p := w.tell(nil, onCreate("a", fails(1, later)), onCreate("b", ok))
			_, _ = p.pass()
			w.wantTold("after the first attempt", "False", "True", nil)
			if text, _ := w.condition("Ready", "message").(string); !strings.Contains(text, "attempt 1: not yet") {
				w.t.Errorf("the message: %q", text)
			}
			w.want("the reason", "Retrying", w.condition("Ready", "reason"))
			p.settle()
			w.wantTold("in the end", "True", nil, nil)
		}},
		"Failure": {"and when nobody will do anything any more", func(w *world) {
			w.withStatus()
			w.tell(nil, onCreate("a", fails(1, permanentError{}))).settle()
			w.wantTold("in the end", "False", nil, "True")
		}},
		"Blocked": {"and what has to be changed before a handler can be called", func(w *world) {
			w.withStatus()
			_, _ = w.tell(nil, onCreate("a", fails(9, undecodableError{})), onCreate("b", ok)).pass()
			text, _ := w.condition("Ready", "message").(string)
			if !strings.Contains(text, "spec.field: not a number") || strings.Contains(text, "b:") {
				w.t.Errorf("the message: %q", text)
			}
			w.wantTold("it is stuck", "False", nil, "True")
		}},
		"NotReported": {"objects that no reporter matches say nothing", func(w *world) {
			w.withStatus()
			never := func(context.Context, *cause.Cause) (bool, error) { return false, nil }
			w.tell([]handlers.Filter{never}, onCreate("a", ok)).settle()
			w.tell([]handlers.Filter{never}).settle()
			w.wantTold("in the end", nil, nil, nil)
		}},
		"FilterFails": {"a filter that fails is no reason to say nothing, nor anything", func(w *world) {
			w.withStatus()
			broken := true
			p := w.tell([]handlers.Filter{func(context.Context, *cause.Cause) (bool, error) {
				if broken {
					return false, errors.New("broken filter")
				}
				return true, nil
			}}, onCreate("a", ok))
			if _, err := p.pass(); err == nil || !strings.Contains(err.Error(), "broken filter") {
				w.t.Errorf("the error: %v", err)
			}
			broken = false
			p.settle()
			w.wantTold("mended", "True", nil, nil)
			broken = true
			if _, err := w.tell(p.handling.Conditions.Reporters[0].Description.Filters).pass(); err == nil {
				w.t.Error("the filter fails where there is no news as well")
			}
		}},
		"NoPlace": {"a kind that takes no conditions goes on without them", func(w *world) {
			w.withStatus()
			p := w.tell(nil, onCreate("a", ok))
			p.acceptance.closed = true
			p.settle()
			w.tell(nil).acceptance.closed = true
			w.wantTold("in the end", nil, nil, nil)
			w.wantCalls("all the same", "0s create a")
			q := w.tell(nil)
			q.acceptance.closed = true
			q.settle()
			w.wantTold("without news", nil, nil, nil)
		}},
		"Deletion": {"nobody reads what is told of an object that is let go", func(w *world) {
			w.withStatus()
			p := w.tell(nil, onCreate("a", ok), onDelete("d", fails(1, later)))
			p.settle()
			w.delete()
			_, _ = p.pass()
			w.wantTold("a deletion that takes its time", "False", "True", nil)
			w.drainWrites()
			time.Sleep(10 * time.Second)
			_, _ = p.pass()
			w.wantWrites("the end", "main 200")
		}},
		"Exit": {"what the exit interrupts has not failed", func(w *world) {
			w.withStatus()
			var p *telling
			p = w.tell(nil, onCreate("a", func(ctx context.Context, _ *handlers.Invocation) error {
				p.exit()
				<-ctx.Done()
				return context.Cause(ctx)
			}))
			p.settle()
			w.wantTold("interrupted", nil, nil, nil)
		}},
	})
}

// TestConditionsCatchUp is about objects for which no handler was called.
func TestConditionsCatchUp(t *testing.T) {
	told := func(w *world, p *telling) {
		p.settle()
		w.wantTold("told", "True", nil, nil)
		w.drainWrites()
	}
	run(t, map[string]scenario{
		"Nothing": {"an object of which nothing is known says that there is nothing to do", func(w *world) {
			w.withStatus()
			told(w, w.tell(nil, onUpdate("u", ok)))
		}},
		"Once": {"should somebody take that away, it is their matter", func(w *world) {
			w.withStatus()
			p := w.tell(nil)
			told(w, p)
			w.set(nil, "status", "conditions")
			p.settle()
			w.wantTold("taken away", nil, nil, nil)
			told(w, w.tell(nil))
		}},
		"Generation": {"it is about the object as it is now", func(w *world) {
			w.withStatus()
			p := w.tell(nil)
			told(w, p)
			w.set("b", "spec", "field")
			p.settle()
			w.wantTold("another generation", "True", nil, nil)
			p.settle()
			w.wantWrites("told once", "status 200")
		}},
		"AtRest": {"what is right is left alone", func(w *world) {
			w.withStatus()
			told(w, w.tell(nil))
			w.tell(nil).settle()
			w.wantWrites("another process")
		}},
		"LeftOver": {"nobody is at work any more", func(w *world) {
			w.withStatus()
			told(w, w.tell(nil))
			w.edit(func(body map[string]any) {
				list, _ := at(body, "status", "conditions").([]any)
				put(body, append(list, map[string]any{"type": "Reconciling", "status": "True"}), "status", "conditions")
			})
			told(w, w.tell(nil))
		}},
		"Deleting": {"nobody reads it of an object that goes", func(w *world) {
			w.withStatus()
			w.set([]any{"other/finalizer"}, "metadata", "finalizers")
			w.delete()
			w.tell(nil).settle()
			w.wantTold("it goes", nil, nil, nil)
		}},
		"Resumed": {"handlers that were called for no change say how they did", func(w *world) {
			w.withStatus()
			told(w, w.tell(nil, onCreate("a", ok)))
			p := w.tell(nil, onResume("r", fails(1, permanentError{})))
			p.memory.Initial = true
			p.settle()
			w.wantTold("a new process", "False", nil, "True")
		}},
		"ResumedAfterAFailure": {"only a change makes up for what has failed before, or who has", func(w *world) {
			w.withStatus()
			w.tell(nil, onCreate("c", fails(1, permanentError{}))).settle()
			w.wantTold("a creation", "False", nil, "True")
			p := w.tell(nil, onResume("r", ok), onUpdate("u", ok))
			p.memory.Initial = true
			p.settle()
			w.wantTold("somebody else has resumed", "False", nil, "True")
			w.set("two", "spec", "field")
			p.settle()
			w.wantTold("a change was handled", "True", nil, nil)
		}},
	})
}
