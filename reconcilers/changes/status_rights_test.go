package changes_test

import (
	"context"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// kopfStores is the default memory of Kopf operators.
var kopfStores = stores{diffbase.Annotations{}, progress.Smart{}}

// finished returns a status record of a successful handler.
func finished(purpose string) map[string]any {
	return map[string]any{
		"started": "2024-05-06T07:08:09.123456+00:00", "stopped": "2024-05-06T07:08:09.123456+00:00",
		"purpose": purpose,
		"retries": int64(1), "success": true, "failure": false,
	}
}

// TestStatusRights shows that a client that can write only the status of an object cannot influence its handlers
// (deviation D-status-rights).
func TestStatusRights(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	remember := func(w *harness, id string, record any) { w.set(record, "status", "kopf", "progress", id) }
	run(t, map[string]scenario{
		"Delete": {"a forged success in the status does not skip a delete handler", func(w *harness) {
			p := w.startWith(kopfStores, onCreate("a", ok), onDelete("d", ok))
			p.settle()
			remember(w, "d", finished("delete"))
			w.delete()
			p.settle()
			w.wantCalls("all", "0s create a", "0s delete d")
		}},
		"DeleteInTheMiddleOfACreation": {"a forged success does not skip a delete handler in a " +
			"creation", func(w *harness) {
			p := w.startWith(kopfStores, onCreate("a", fails(9, later)), onDelete("d", ok))
			_, _ = p.pass()
			remember(w, "d", finished(""))
			w.delete()
			w.startWith(kopfStores, onCreate("a", ok), onDelete("d", ok)).settle()
			w.wantCalls("all", "0s create a", "0s delete d")
		}},
		"DeleteNeverHandled": {"a forged success does not skip a delete handler of an object that has only the " +
			"finalizer", func(w *harness) {
			w.set([]any{finalizer}, "metadata", "finalizers")
			remember(w, "d", finished(""))
			w.delete()
			w.startWith(kopfStores, onCreate("a", ok), onDelete("d", ok)).settle()
			w.wantCalls("all", "0s delete d")
		}},
		"DeleteDelayed": {"forged delays, start times and attempts do not influence delete handlers", func(w *harness) {
			registered := []*handlers.Handler{
				onCreate("a", ok), onDelete("d", ok), onDelete("e", ok, timeout(time.Hour)),
				onDelete("f", ok, retries(3)),
			}
			p := w.startWith(kopfStores, registered...)
			p.settle()
			remember(w, "d", map[string]any{"delayed": "9999-01-01T00:00:00Z"})
			remember(w, "e", map[string]any{"started": "2000-01-01T00:00:00Z"})
			remember(w, "f", map[string]any{"retries": int64(3)})
			w.delete()
			p.settle()
			w.wantCalls("all", "0s create a", "0s delete d", "0s delete e", "0s delete f")
		}},
		"Update": {"a forged success does not skip an update handler", func(w *harness) {
			p := w.startWith(kopfStores, onUpdate("u", ok))
			p.settle()
			remember(w, "u", finished("update"))
			w.set("two", "spec", "field")
			p.settle()
			w.wantCalls("all", "0s update u")
		}},
		"Blocked": {"unreadable progress in the status does not block the object", func(w *harness) {
			p := w.startWith(kopfStores, onUpdate("u", ok))
			p.settle()
			w.set("oops", "status", "kopf", "progress")
			w.set("two", "spec", "field")
			p.settle()
			w.wantCalls("all", "0s update u")
			w.want("errors", []error(nil), p.errs)
		}},
		"Quiet": {"a forged record in the status causes no write", func(w *harness) {
			p := w.startWith(kopfStores, onCreate("a", ok), onUpdate("u", ok))
			p.settle()
			w.drainWrites()
			remember(w, "u", finished("update"))
			p.settle()
			w.wantWrites("quiet")
		}},
	})
}

// TestRecordsOfFormerVersions shows that unfinished creations of an old Kopf, which stored its progress in the status,
// are continued.
func TestRecordsOfFormerVersions(t *testing.T) {
	for kind, subresource := range map[string]bool{"": false, "Subresource": true} {
		run(t, map[string]scenario{"TakenOver" + kind: {"successes of the former version are not repeated",
			func(w *harness) {
				w.serveStatus(subresource)
				noted := func(_ context.Context, c *handlers.Invocation) error {
					w.called(c.Cause, c.Handler.ID)
					return nil
				}
				registered := []*handlers.Handler{
					onCreate("a", ok), onCreate("b", fails(1, temporaryError{5 * time.Second})),
					onCreate("c", runs(on("", "one", noted), on("", "two", noted))),
				}
				delayed := map[string]any{
					"delayed": time.Now().Add(10 * time.Second).UTC().Format(time.RFC3339), "retries": int64(1),
				}
				parent := map[string]any{"delayed": time.Now().Add(20 * time.Second).UTC().Format(time.RFC3339),
					"retries": int64(1),
					"subrefs": []any{"c/one", "c/two"}}
				w.set(
					map[string]any{"a": finished("create"), "b": delayed, "c": parent, "c/one": finished("create")},
					"status", "kopf", "progress",
				)
				w.startWith(kopfStores, registered...).settle()
				w.wantCalls("all", "10s create b", "15s create b", "20s create c", "20s create c/two")
				w.wantAt("all", map[string]any{}, "status", "kopf", "progress")
			}}})
	}
}
