package changes_test

import (
	"context"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// onlyNumbers is a schema in which spec.size must be a number.
func onlyNumbers(body map[string]any) error {
	switch at(body, "spec", "size").(type) {
	case nil, int64:
		return nil
	}
	return memapi.NewRefusal(422, "spec.size")
}

// TestRefusals shows that content that the API server refuses is a failure of the handler that wrote it.
func TestRefusals(t *testing.T) {
	bad, good := patches("big", "spec", "size"), patches(int64(5), "spec", "size")
	run(t, map[string]scenario{
		"Blamed": {"a handler whose changes are refused is retried, and other outcomes are written", func(w *harness) {
			w.schema = onlyNumbers
			attempt := 0
			p := w.start(onCreate("a", func(ctx context.Context, c *handlers.Invocation) error {
				if attempt++; attempt == 1 {
					return bad(ctx, c)
				}
				return good(ctx, c)
			}))
			_, _ = p.pass()
			w.want("attempts", int64(1), w.record("a", "retries"))
			w.want("success", false, w.record("a", "success"))
			p.settle()
			w.wantCalls("all", "0s create a", "1m0s create a")
			w.wantWrites("the refusal, the search, the record, the closing, and the handler's own change",
				"main 422", "main 422", "main 200", "main 200", "main 200")
			w.wantAt("all", int64(5), "spec", "size")
			w.want("errors", []error(nil), p.errs)
			if !w.hasLogged("refused", `"handler"="a"`) {
				w.t.Errorf("the refusal is not logged: %v", w.logLines)
			}
		}},
		"Limited": {"refusals count as attempts", func(w *harness) {
			w.schema = onlyNumbers
			w.start(onCreate("a", bad, retries(2)), onCreate("b", ok)).settle()
			w.wantCalls("all", "0s create a", "0s create b", "1m0s create a")
			w.wantHandled("all", "one")
			w.wantClean("all")
		}},
		"Innocent": {"other handlers of a refused write succeed and are not called again", func(w *harness) {
			w.schema = onlyNumbers
			w.start(
				onCreate("a", patches("x", "spec", "id")), onCreate("b", bad, retries(2)), onCreate("c", returns("r")),
			).settle()
			w.wantCalls("all", "0s create a", "0s create b", "0s create c", "1m0s create b")
			w.wantAt("all", "x", "spec", "id")
			w.wantAt("all", "r", "status", "c")
			w.wantHandled("all", "one")
		}},
		"Result": {"a handler whose result is refused is retried", func(w *harness) {
			w.schema = func(body map[string]any) error {
				if _, isText := at(body, "status", "a").(string); isText {
					return memapi.NewRefusal(422, "status.a")
				}
				return nil
			}
			p := w.start(onCreate("a", returns("text"), retries(2)), onCreate("b", ok))
			p.settle()
			w.wantCalls("all", "0s create a", "0s create b", "1m0s create a")
			w.want("errors", []error(nil), p.errs)
		}},
		"AlreadyFailed": {"a failed handler keeps its own error if its changes are refused as well", func(w *harness) {
			w.schema = onlyNumbers
			p := w.start(
				onCreate("a", all(bad, fails(9, permanentError{}))),
				onCreate("b", all(bad, fails(1, temporaryError{time.Second})), retries(2)),
			)
			p.settle()
			w.wantCalls("all", "0s create a", "0s create b", "1s create b")
			w.want("errors", []error(nil), p.errs)
		}},
		"AtCheckpoint": {"a handler whose changes are refused at a checkpoint is retried", func(w *harness) {
			w.schema = onlyNumbers
			p := w.start(onCreate("a", bad, retries(2)), onCreate("b", takes(10*time.Second)))
			done := p.settleInBackground()
			advanceTime(2 * time.Second)
			w.want("success of a", false, w.record("a", "success"))
			w.want("interim", nil, w.annotation(interimAnnotation))
			<-done
			w.wantCalls("all", "0s create a", "0s create b", "1m1s create a")
		}},
		"Delete": {"a deletion completes when refusals have used up the retries", func(w *harness) {
			p := w.start(onDelete("d", bad, retries(2)))
			p.settle()
			w.schema = onlyNumbers
			w.delete()
			p.settle()
			w.wantCalls("all", "0s delete d", "1m0s delete d")
			w.want("stored", map[string]any(nil), w.stored())
		}},
		"Nobody": {"a refusal that no handler has caused is an error, and no handler is repeated", func(w *harness) {
			w.schema = func(body map[string]any) error {
				if at(body, "spec", "field") == "one" {
					return memapi.NewRefusal(422, "spec.field")
				}
				return nil
			}
			p := w.start(onCreate("a", ok), onUpdate("u", ok))
			for range 5 {
				p.step()
			}
			w.want("errors", 5, len(p.errs))
			w.wantCalls("refused", "0s create a")
			w.set("two", "spec", "field")
			p.settle()
			w.wantCalls("repaired", "5s update u")
			w.wantHandled("repaired", "two")
		}},
		"NotItsFault": {"a handler is not retried for a refusal that its changes have not caused",
			func(w *harness) {
				w.schema = func(body map[string]any) error {
					if at(body, "metadata", "annotations", handledAnnotation) != nil &&
						at(body, "spec", "field") == "one" {
						return memapi.NewRefusal(422, "spec.field")
					}
					return nil
				}
				p := w.start(onCreate("a", patches("x", "metadata", "labels", "id")))
				p.step()
				w.want("errors", 1, len(p.errs))
				w.wantAt("its patch", "x", "metadata", "labels", "id")
				w.set("two", "spec", "field")
				p.settle()
				w.wantCalls("all", "0s create a")
			}},
		"StatusFlushed": {"a flush returns the refusal of the status, although the rest is written", func(w *harness) {
			w.serveStatus(true)
			w.before = func(r write) error {
				if r.status {
					return memapi.NewRefusal(403)
				}
				return nil
			}
			var told error
			w.start(onCreate("a", func(ctx context.Context, c *handlers.Invocation) error {
				err := all(patches("big", "status", "size"), patches("x", "metadata", "labels", "id"))(ctx, c)
				told = c.Writer.Flush(ctx)
				return err
			})).settle()
			if told == nil {
				w.t.Error("the flush succeeded, want an error")
			}
			w.wantAt("all", "x", "metadata", "labels", "id")
			if !w.hasLogged("refused the status", `"handlers"=["a"]`) {
				w.t.Errorf("the handler of the refused status is not logged: %v", w.logLines)
			}
		}},
		"StatusForbidden": {"missing rights for the status do not block the rest of the write", func(w *harness) {
			w.serveStatus(true)
			w.before = func(r write) error {
				if r.status {
					return memapi.NewRefusal(403)
				}
				return nil
			}
			p := w.start(onCreate("a", returns("r")))
			p.settle()
			w.wantWrites("all", "status 403", "main 200")
			w.wantHandled("all", "one")
		}},
	})
}
