package changes_test

import (
	"context"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// TestReverting shows the handling of reverted changes, and of objects that leave the filters.
func TestReverting(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		"Reverted": {"a change that is reverted before any handler succeeded is dropped", func(w *harness) {
			p := w.start(onUpdate("u", fails(9, later)))
			p.settle()
			w.set("two", "spec", "field")
			_, _ = p.pass()
			w.set("one", "spec", "field")
			w.drainWrites()
			p.settle()
			w.wantCalls("all", "0s update u")
			w.wantWrites("reverting", "main 200")
			w.wantHandled("reverting", "one")
			w.wantClean("reverting")
		}},
		"RevertedAfterSuccess": {"a change with one success is reverted by an update for all", func(w *harness) {
			p := w.start(onUpdate("u", ok), onUpdate("v", fails(1, later)))
			p.settle()
			w.set("two", "spec", "field")
			_, _ = p.pass()
			w.set("one", "spec", "field")
			p.settle()
			w.wantCalls("all", "0s update u", "0s update v", "0s update u", "0s update v")
			w.wantHandled("all", "one")
			w.wantClean("all")
		}},
		"RevertedTwice": {"after two reverts, all handlers are called again, even if none succeeded in " +
			"between", func(w *harness) {
			p := w.start(onUpdate("u", func(_ context.Context, c *handlers.Invocation) error {
				if at(working(c), "spec", "field") == "one" {
					return later
				}
				return nil
			}), onUpdate("v", func(_ context.Context, c *handlers.Invocation) error {
				if c.Retry == 0 {
					return later
				}
				return nil
			}))
			p.settle()
			w.set("two", "spec", "field")
			_, _ = p.pass()
			w.set("one", "spec", "field")
			_, _ = p.pass()
			w.set("two", "spec", "field")
			w.calls()
			p.settle()
			w.wantCalls("after the second revert", "0s update u", "0s update v", "10s update v")
			w.wantHandled("all", "two")
			w.wantClean("all")
		}},
		"RevertedAfterClosing": {"a revert after an update that only some handlers have seen is an update for all",
			func(w *harness) {
				p := w.start(onCreate("a", ok), onCreate("b", fails(1, later)),
					onUpdate("a", fails(1, later)), onUpdate("b", fails(1, later)))
				_, _ = p.pass()
				w.set("two", "spec", "field")
				advanceTime(10 * time.Second)
				_, _ = p.pass() // b has seen two, a has seen one
				_, _ = p.pass() // the update fails
				w.set("one", "spec", "field")
				w.calls()
				p.settle()
				w.wantCalls("after the revert", "10s update a", "10s update b")
				w.wantHandled("all", "one")
				w.wantClean("all")
			}},
		"RevertedWhileDown": {"a revert during the downtime is an update, also for resume handlers", func(w *harness) {
			p := w.start(onUpdate("u", ok), onUpdate("v", fails(9, later)))
			p.settle()
			w.set("two", "spec", "field")
			_, _ = p.pass()
			p.kill()
			w.set("one", "spec", "field")
			w.calls()
			next := w.start(onUpdate("u", ok), onUpdate("v", ok), onResume("r", ok))
			next.memory.Initial = true
			next.settle()
			w.wantCalls("second life", "0s update u", "0s update v", "0s update r")
			w.wantHandled("second life", "one")
			w.wantClean("second life")
		}},
		"EditedAgain": {"a second edit does not repeat finished handlers, and is handled after the first",
			func(w *harness) {
				p := w.start(onUpdate("u", ok), onUpdate("v", fails(1, later)))
				p.settle()
				w.set("two", "spec", "field")
				_, _ = p.pass()
				w.set("three", "spec", "field")
				p.settle()
				w.wantCalls("all", "0s update u", "0s update v", "10s update v", "10s update u", "10s update v")
				w.wantHandled("all", "three")
				w.wantClean("all")
			}},
		"LeftFilters": {"the progress of an object that leaves the filters is dropped, and it starts again when it " +
			"returns",
			func(w *harness) {
				w.set("yes", "metadata", "labels", "on")
				p := w.start(onCreate("a", fails(1, later), ifLabelled))
				_, _ = p.pass()
				w.set("no", "metadata", "labels", "on")
				p.settle()
				w.wantClean("away")
				w.set("yes", "metadata", "labels", "on")
				p.settle()
				w.wantCalls("all", "0s create a", "0s create a")
			}},
		"LeftFiltersAfterSuccess": {"a returning object has the state of its last successful handler as the old state",
			func(w *harness) {
				w.set("yes", "metadata", "labels", "on")
				var old any
				look := func(_ context.Context, c *handlers.Invocation) error {
					old = at(c.Cause.Old, "spec", "field")
					return nil
				}
				p := w.start(onUpdate("u", look, ifLabelled), onUpdate("v", fails(9, later), ifLabelled, retries(2)))
				p.settle()
				w.set("two", "spec", "field")
				_, _ = p.pass()
				w.set("no", "metadata", "labels", "on")
				p.settle()
				w.wantHandled("away", "two")
				w.want("record of v", nil, w.annotation(prefix+"/v"))
				w.set("yes", "metadata", "labels", "on")
				w.set("one", "spec", "field")
				p.settle()
				w.want("old", "two", old)
			}},
		"FieldUnselected": {"a success of a handler that does not match any more still decides the handled state",
			func(w *harness) {
				field := onUpdate("f", ok)
				field.Field, field.NeedsChange = diff.ParsePath("spec.field"), true
				p := w.start(field, onUpdate("v", fails(1, later)))
				p.settle()
				w.set("two", "spec", "field")
				_, _ = p.pass()
				w.edit(func(body map[string]any) { put(body, "one", "spec", "field"); put(body, "x", "spec", "other") })
				p.settle()
				w.wantCalls("all", "0s update f", "0s update v", "10s update v", "10s update f", "10s update v")
				w.wantHandled("all", "one")
			}},
	})
}
