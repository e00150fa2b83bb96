package changes_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// TestConditions shows which conditions an object gets for the outcomes of its handlers, and when.
func TestConditions(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		"Success": {"an object whose handlers have all succeeded is ready", func(w *harness) {
			w.withStatus()
			w.startReporting(nil, onCreate("a", ok)).settle()
			w.wantConditions("finally", "True", nil, nil)
			w.wantWrites("the conditions are written with the outcome", "status 200", "main 200")
		}},
		"Retry": {"an object with a retried handler is reconciling, with the error as the message", func(w *harness) {
			w.withStatus()
			p := w.startReporting(nil, onCreate("a", fails(1, later)), onCreate("b", ok))
			_, _ = p.pass()
			w.wantConditions("after the first attempt", "False", "True", nil)
			if text, _ := w.condition("Ready", "message").(string); !strings.Contains(text, "attempt 1: not yet") {
				w.t.Errorf("the message: %q", text)
			}
			w.want("the reason", "Retrying", w.condition("Ready", "reason"))
			p.settle()
			w.wantConditions("finally", "True", nil, nil)
		}},
		"Failure": {"an object with a permanently failed handler is stalled", func(w *harness) {
			w.withStatus()
			w.startReporting(nil, onCreate("a", fails(1, permanentError{}))).settle()
			w.wantConditions("finally", "False", nil, "True")
		}},
		"Blocked": {"an object that a handler cannot decode is stalled, and the message names the " +
			"field", func(w *harness) {
			w.withStatus()
			_, _ = w.startReporting(nil, onCreate("a", fails(9, undecodableError{})), onCreate("b", ok)).pass()
			text, _ := w.condition("Ready", "message").(string)
			if !strings.Contains(text, "spec.field: not a number") || strings.Contains(text, "b:") {
				w.t.Errorf("the message: %q", text)
			}
			w.wantConditions("stalled", "False", nil, "True")
		}},
		"NotReported": {"an object that matches no reporter gets no conditions", func(w *harness) {
			w.withStatus()
			never := func(context.Context, *cause.Cause) (bool, error) { return false, nil }
			w.startReporting([]handlers.Filter{never}, onCreate("a", ok)).settle()
			w.startReporting([]handlers.Filter{never}).settle()
			w.wantConditions("finally", nil, nil, nil)
		}},
		"FilterFails": {"a failing filter of a reporter is an error, with or without an outcome", func(w *harness) {
			w.withStatus()
			broken := true
			p := w.startReporting([]handlers.Filter{func(context.Context, *cause.Cause) (bool, error) {
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
			w.wantConditions("the filter works again", "True", nil, nil)
			broken = true
			if _, err := w.startReporting(p.handling.Conditions.Reporters[0].Description.Filters).pass(); err == nil {
				w.t.Error("the pass without an outcome succeeded, want the error of the filter")
			}
		}},
		"NoPlace": {"an object of a kind that refuses conditions is handled without them", func(w *harness) {
			w.withStatus()
			p := w.startReporting(nil, onCreate("a", ok))
			p.acceptance.closed = true
			p.settle()
			w.startReporting(nil).acceptance.closed = true
			w.wantConditions("finally", nil, nil, nil)
			w.wantCalls("handled without conditions", "0s create a")
			q := w.startReporting(nil)
			q.acceptance.closed = true
			q.settle()
			w.wantConditions("without an outcome", nil, nil, nil)
		}},
		"Deletion": {"a released object gets no conditions with its last write", func(w *harness) {
			w.withStatus()
			p := w.startReporting(nil, onCreate("a", ok), onDelete("d", fails(1, later)))
			p.settle()
			w.delete()
			_, _ = p.pass()
			w.wantConditions("an unfinished deletion", "False", "True", nil)
			w.drainWrites()
			time.Sleep(10 * time.Second)
			_, _ = p.pass()
			w.wantWrites("after the deletion", "main 200")
		}},
		"Exit": {"a handler that the exit interrupts does not count as failed", func(w *harness) {
			w.withStatus()
			var p *conditionsProcess
			p = w.startReporting(nil, onCreate("a", func(ctx context.Context, _ *handlers.Invocation) error {
				p.exit()
				<-ctx.Done()
				return context.Cause(ctx)
			}))
			p.settle()
			w.wantConditions("interrupted", nil, nil, nil)
		}},
	})
}

// TestConditionsCatchUp shows which conditions an object gets without a call of a handler.
func TestConditionsCatchUp(t *testing.T) {
	told := func(w *harness, p *conditionsProcess) {
		p.settle()
		w.wantConditions("written", "True", nil, nil)
		w.drainWrites()
	}
	run(t, map[string]scenario{
		"Nothing": {"an object without any progress is ready", func(w *harness) {
			w.withStatus()
			told(w, w.startReporting(nil, onUpdate("u", ok)))
		}},
		"Once": {"a process does not restore conditions that another client has removed", func(w *harness) {
			w.withStatus()
			p := w.startReporting(nil)
			told(w, p)
			w.set(nil, "status", "conditions")
			p.settle()
			w.wantConditions("removed by another client", nil, nil, nil)
			told(w, w.startReporting(nil))
		}},
		"Generation": {"conditions are updated for each new generation", func(w *harness) {
			w.withStatus()
			p := w.startReporting(nil)
			told(w, p)
			w.set("b", "spec", "field")
			p.settle()
			w.wantConditions("another generation", "True", nil, nil)
			p.settle()
			w.wantWrites("written once", "status 200")
		}},
		"AtRest": {"correct conditions are not written again", func(w *harness) {
			w.withStatus()
			told(w, w.startReporting(nil))
			w.startReporting(nil).settle()
			w.wantWrites("another process")
		}},
		"LeftOver": {"a leftover Reconciling condition is removed when no handler is running", func(w *harness) {
			w.withStatus()
			told(w, w.startReporting(nil))
			w.edit(func(body map[string]any) {
				list, _ := at(body, "status", "conditions").([]any)
				put(body, append(list, map[string]any{"type": "Reconciling", "status": "True"}), "status", "conditions")
			})
			told(w, w.startReporting(nil))
		}},
		"Deleting": {"an object that is being deleted without delete handlers gets no conditions", func(w *harness) {
			w.withStatus()
			w.set([]any{"other/finalizer"}, "metadata", "finalizers")
			w.delete()
			w.startReporting(nil).settle()
			w.wantConditions("deleted without handlers", nil, nil, nil)
		}},
		"Resumed": {"a failed resume handler makes the object stalled although nothing has changed", func(w *harness) {
			w.withStatus()
			told(w, w.startReporting(nil, onCreate("a", ok)))
			p := w.startReporting(nil, onResume("r", fails(1, permanentError{})))
			p.memory.Initial = true
			p.settle()
			w.wantConditions("a new process", "False", nil, "True")
		}},
		"ResumedAfterAFailure": {"a failure stays in the conditions until a later change is handled, also after a " +
			"resume", func(w *harness) {
			w.withStatus()
			w.startReporting(nil, onCreate("c", fails(1, permanentError{}))).settle()
			w.wantConditions("a creation", "False", nil, "True")
			p := w.startReporting(nil, onResume("r", ok), onUpdate("u", ok))
			p.memory.Initial = true
			p.settle()
			w.wantConditions("another handler has resumed", "False", nil, "True")
			w.set("two", "spec", "field")
			p.settle()
			w.wantConditions("the change was handled", "True", nil, nil)
		}},
	})
}
