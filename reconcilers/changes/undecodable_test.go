package changes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
)

// TestUndecodable shows the handling of an object that cannot be decoded for its handler.
func TestUndecodable(t *testing.T) {
	bad := func(_ context.Context, c *handlers.Invocation) error {
		if at(working(c), "spec", "field") == "bad" {
			return undecodableError{}
		}
		return nil
	}
	run(t, map[string]scenario{
		"Waits": {"an undecodable object is not retried or counted until it changes; other handlers go " +
			"on", func(w *harness) {
			w.set("bad", "spec", "field")
			p := w.start(onCreate("a", bad, retries(1)), onCreate("b", ok), onUpdate("u", ok))
			p.settle()
			w.want("attempts", int64(0), w.record("a", "retries"))
			w.want("record of b", true, w.record("b", "success"))
			w.want("diff-base", nil, w.annotation(handledAnnotation))
			w.calls()
			time.Sleep(time.Hour)
			w.set("good", "spec", "field")
			p.settle()
			w.wantCalls("repaired", "1h0m0s create a", "1h0m0s update u")
			w.wantHandled("repaired", "good")
		}},
		"Filter": {"a filter that cannot decode the object blocks it without retries until it changes",
			func(w *harness) {
				w.set("bad", "spec", "field")
				p := w.start(onCreate("a", ok, func(h *handlers.Handler) {
					h.Filters = append(h.Filters, func(_ context.Context, c *cause.Cause) (bool, error) {
						if at(c.Body(), "spec", "field") == "bad" {
							return false, undecodableError{}
						}
						return true, nil
					})
				}))
				_, err := p.pass()
				var blocked *changes.BlockedError
				if !errors.As(err, &blocked) {
					w.t.Errorf("want a BlockedError, got %v", err)
				}
				w.wantWrites("blocked")
				w.set("good", "spec", "field")
				p.settle()
				w.wantCalls("repaired", "0s create a")
			}},
		"Deletion": {"an undecodable object does not block its deletion, whose attempts are limited", func(w *harness) {
			w.set([]any{finalizer}, "metadata", "finalizers")
			w.set("bad", "spec", "field")
			p := w.start(
				onDelete(
					"d",
					func(context.Context, *handlers.Invocation) error { return undecodableError{} },
					retries(2),
				),
			)
			w.delete()
			p.settle()
			w.wantCalls("all", "0s delete d", "1m0s delete d")
			w.want("stored", map[string]any(nil), w.stored())
		}},
	})
}

// TestReasons shows the old and the new state in the causes of handlers.
func TestReasons(t *testing.T) {
	type seen struct {
		Old, New any
		Retry    int
	}
	var last seen
	look := func(_ context.Context, c *handlers.Invocation) error {
		last = seen{at(c.Cause.Old, "spec", "field"), at(c.Cause.New, "spec", "field"), c.Retry}
		return nil
	}
	run(t, map[string]scenario{
		"OldAndNew": {"the old state is the last-handled configuration", func(w *harness) {
			p := w.start(onCreate("a", look), onUpdate("u", look), on(cause.Delete, "d", look))
			p.settle()
			w.want("creation", seen{nil, "one", 0}, last)
			w.set("two", "spec", "field")
			p.settle()
			w.want("update", seen{"one", "two", 0}, last)
			w.set("three", "spec", "field")
			w.delete()
			p.settle()
			w.want("deletion", seen{"two", "three", 0}, last)
		}},
		"AfterDowntime": {"changes during the downtime are handled at the next start", func(w *harness) {
			w.start(onCreate("a", look)).settle()
			w.set("two", "spec", "field")
			w.start(onUpdate("u", look)).settle()
			w.want("update", seen{"one", "two", 0}, last)
		}},
	})
}
