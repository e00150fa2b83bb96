package changes_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// does returns a handler that runs something.
func does(something func()) handlers.Func {
	return func(context.Context, *handlers.Invocation) error { something(); return nil }
}

// TestInterference shows how changes by other clients during a handler are handled.
func TestInterference(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		// Deviation D-handling-config.
		"EditDuringCreate": {"an edit that no handler has seen is handled as an update", func(w *harness) {
			p := w.start(
				onCreate("a", does(func() { w.set("two", "spec", "field") })), onCreate("b", ok), onUpdate("u", ok),
			)
			p.settle()
			w.wantCalls("all", "0s create a", "0s create b", "0s update u")
			w.wantHandled("all", "two")
		}},
		"EditBetweenAttempts": {"an edit after the first success is handled as an update", func(w *harness) {
			p := w.start(onCreate("a", ok), onCreate("b", fails(1, later)), onUpdate("u", ok))
			_, _ = p.pass()
			w.set("two", "spec", "field")
			_, _ = p.pass()
			w.want("interim", "one", at(w.annotation(interimAnnotation), "spec", "field"))
			p.settle()
			w.wantCalls("all", "0s create a", "0s create b", "10s create b", "10s update u")
			w.wantHandled("all", "two")
		}},
		"EditBeforeSuccess": {"an edit before the first success is part of the creation",
			func(w *harness) {
				p := w.start(onCreate("a", fails(1, later)), onUpdate("u", ok))
				_, _ = p.pass()
				w.set("two", "spec", "field")
				p.settle()
				w.wantCalls("all", "0s create a", "10s create a")
				w.wantHandled("all", "two")
			}},
		"DeletedDuringCreate": {"a deletion during a handler ends the creation when that handler returns",
			func(w *harness) {
				p := w.start(
					onCreate("a", ok),
					onCreate("b", all(takes(500*time.Millisecond), does(w.delete), takes(5*time.Second))),
					onCreate("c", ok), onDelete("d", ok))
				p.settle()
				w.wantCalls("all", "0s create a", "0s create b", "5.5s delete d")
				w.want("stored", map[string]any(nil), w.stored())
			}},
		"GoneDuringCreate": {"no further handler is called after a write shows that the object is gone",
			func(w *harness) {
				p := w.start(onCreate("a", does(w.delete)), onCreate("b", takes(5*time.Second)), onCreate("c", ok))
				p.settle()
				w.wantCalls("all", "0s create a", "0s create b")
				w.wantWrites("all", "main 404")
				w.want("gone", true, p.gone)
				w.want("errors", []error(nil), p.errs)
			}},
		"GoneAndShown": {"a stale cache that shows a deleted object again calls no handler",
			func(w *harness) {
				p := w.start(onCreate("a", does(w.delete)))
				body := w.stored()
				_, _ = p.passOver(body)
				metadata := body["metadata"].(map[string]any)
				metadata["resourceVersion"] = strconv.Itoa(versionOf(body) + 1)
				if next, err := p.passOver(body); err != nil || !next.Gone {
					w.t.Errorf("want a deleted object, got gone: %v, error %v", next.Gone, err)
				}
				w.wantCalls("all", "0s create a")
				w.want("reads", 1, w.reads)
			}},
		"GoneTellsHandler": {"a running handler is cancelled with ErrDeleted when its object is gone",
			func(w *harness) {
				var told error
				p := w.start(onCreate("a", does(w.delete)),
					onCreate("b", func(ctx context.Context, _ *handlers.Invocation) error {
						<-ctx.Done()
						told = context.Cause(ctx)
						time.Sleep(5 * time.Second) // it takes its time
						return told
					}))
				p.settle()
				if !errors.Is(told, execution.ErrDeleted) {
					w.t.Errorf("cancellation cause: want %v, got %v", execution.ErrDeleted, told)
				}
				w.wantWrites("all", "main 404")
			}},
		"Replaced": {"nothing is written to another object of the same name", func(w *harness) {
			p := w.start(onCreate("a", all(patches("mine", "spec", "owner"), does(w.replace))), onCreate("b", ok))
			_, err := p.pass()
			if err != nil {
				w.t.Fatalf("pass: %v", err)
			}
			w.wantAt("the other object", nil, "metadata", "annotations")
			w.wantAt("the other object", nil, "spec", "owner")
			w.wantWrites("all", "main 422")
		}},
		"ReplacedWithStatus": {"nothing is written to the status of another object of the same name", func(w *harness) {
			w.serveStatus(true)
			p := w.start(
				onCreate("a", all(patches("mine", "status", "owner"), does(w.replace))),
				onCreate("b", takes(5*time.Second)),
			)
			next, err := p.pass()
			if err != nil || !next.Gone {
				w.t.Fatalf("want a deleted object, got gone: %v, error %v", next.Gone, err)
			}
			w.wantAt("the other object", nil, "status")
			w.wantAt("the other object", nil, "metadata", "annotations")
			w.wantCalls("all", "0s create a", "0s create b")
		}},
		"ReplacedBeforeFinalizer": {"the finalizer is not added to another object of the same name", func(w *harness) {
			p := w.start(onCreate("a", ok), onDelete("d", ok))
			body := w.stored()
			w.replace()
			next, err := p.passOver(body)
			if err != nil || !next.Gone {
				w.t.Fatalf("want a deleted object, got gone: %v, error %v", next.Gone, err)
			}
			w.wantAt("the other object", nil, "metadata", "finalizers")
			w.wantCalls("all")
		}},
		"DeletedBeforeFinalizer": {"an object that is deleted before it gets the finalizer calls no handler",
			func(w *harness) {
				w.set([]any{"other/one"}, "metadata", "finalizers")
				p := w.start(onCreate("a", ok), onDelete("d", ok))
				body := w.stored()
				w.delete()
				if _, err := p.passOver(body); err != nil {
					w.t.Errorf("pass: %v", err)
				}
				w.wantCalls("all")
				w.wantAt("afterwards", []any{"other/one"}, "metadata", "finalizers")
			}},
		"HeldByAnother": {"a finalizer that another replica has added meanwhile is accepted", func(w *harness) {
			p := w.start(onCreate("a", ok), onDelete("d", ok))
			body := w.stored()
			w.set([]any{finalizer}, "metadata", "finalizers")
			if _, err := p.passOver(body); err != nil {
				w.t.Errorf("pass: %v", err)
			}
			w.wantCalls("all", "0s create a")
			w.wantHandled("all", "one")
		}},
		"ReleasedByAnother": {"an object whose finalizers another client removes during its deletion is gone",
			func(w *harness) {
				release := func() { w.set(nil, "metadata", "finalizers") }
				p := w.start(onDelete("d", does(release)))
				p.settle()
				w.delete()
				p.settle()
				w.want("errors", []error(nil), p.errs)
				w.wantCalls("all", "0s delete d")
			}},
	})
}

// replace deletes the object permanently and creates another one with the same name.
func (s *server) replace() {
	body := object()
	put(body, "uid-2", "metadata", "uid")
	s.create(body)
}

// dropRecordWebhook returns a webhook that drops the record of a handler.
func dropRecordWebhook(id string) func(body map[string]any) {
	return func(body map[string]any) { put(body, nil, "metadata", "annotations", prefix+"/"+id) }
}

// TestUndone shows that a write that is accepted but undone at once, for example by an admission webhook, is an error.
func TestUndone(t *testing.T) {
	run(t, map[string]scenario{
		"Finalizer": {"a finalizer that a webhook removes is an error, and no handler is called", func(w *harness) {
			w.webhook = func(body map[string]any) { delete(body["metadata"].(map[string]any), "finalizers") }
			next, err := w.start(onCreate("a", ok), onDelete("d", ok)).pass()
			if err == nil || next.RequeueAfter != nil {
				w.t.Errorf("want an error that delays the object, got %v and %+v", err, next)
			}
			w.wantCalls("without a finalizer")
		}},
		"OneRecord": {"a record that a webhook removes is an error, even if another record is kept", func(w *harness) {
			p := w.start(
				onCreate("a", fails(9, temporaryError{time.Hour})),
				onCreate("b", fails(9, temporaryError{time.Minute})),
			)
			p.step()
			time.Sleep(time.Minute)
			w.webhook = dropRecordWebhook("b")
			if _, err := p.pass(); err == nil || !strings.Contains(err.Error(), `progress of handler "b"`) {
				w.t.Errorf("want an error that names the handler, got %v", err)
			}
		}},
		"RecordOfASubHandler": {"a removed record is an error that names its sub-handler", func(w *harness) {
			w.webhook = dropRecordWebhook("a.t")
			p := w.compact(onCreate("a", w.steps(nil, sub("s", ok), sub("t", fails(9, temporaryError{time.Hour})))))
			if _, err := p.pass(); err == nil || !strings.Contains(err.Error(), `progress of handler "a/t"`) {
				w.t.Errorf("want an error that names the sub-handler, got %v", err)
			}
		}},
		"NotRemembered": {"a deletion needs no room for its configuration if others hold the object", func(w *harness) {
			w.set([]any{finalizer, "others.example.org/finalizer"}, "metadata", "finalizers")
			w.delete()
			p := w.start(onDelete("d", fails(1, temporaryError{time.Minute})))
			p.handling.Lens.Diffbase = full{diffbase.Annotations{Prefix: prefix}}
			p.settle()
			w.wantCalls("the deletion", "0s delete d", "1m0s delete d")
			w.want("errors", []error(nil), p.errs)
		}},
	})
}
