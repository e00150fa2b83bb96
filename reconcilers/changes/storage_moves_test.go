package changes_test

import (
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

const inStatus = "last-handled-configuration"

// stores are the two storages of an operator.
type stores struct {
	diffbase diffbase.Storage
	progress progress.Storage
}

var (
	annotationStores = stores{
		diffbase.Annotations{Prefix: prefix, WithoutV1: true}, progress.Annotations{Prefix: prefix, WithoutV1: true},
	}
	otherPrefixStores = stores{
		diffbase.Annotations{Prefix: "else.example.org"}, progress.Annotations{Prefix: "else.example.org"},
	}
	statusStores = stores{diffbase.Status{}, progress.Status{}}
)

func both(first, second stores) stores {
	return stores{diffbase.Multi{first.diffbase, second.diffbase}, progress.Multi{first.progress, second.progress}}
}

func (w *harness) startWith(s stores, registered ...*handlers.Handler) *process {
	p := w.start(registered...)
	p.handling.Lens.Diffbase, p.handling.Lens.Progress, p.handling.Progress = s.diffbase, s.progress, s.progress
	p.handling.InterimStorage = changes.NewInterimStorage(prefix, "")
	return p
}

// TestMoves shows how memory moves from one storage to another by way of both (deviation D-moving).
func TestMoves(t *testing.T) {
	ways := map[string]struct{ from, to stores }{
		"AnnotationsToStatus":   {annotationStores, statusStores},
		"StatusToAnnotations":   {statusStores, annotationStores},
		"PrefixToPrefix":        {annotationStores, otherPrefixStores},
		"PrefixToStatusOfKopfs": {stores{diffbase.Annotations{}, progress.Smart{}}, statusStores},
	}
	later := temporaryError{delay: time.Hour}
	for name, way := range ways {
		for kind, subresource := range map[string]bool{"": false, "Subresource": true} {
			scenarios := map[string]scenario{}
			scenarios[name+kind] = scenario{"a move repeats no handler, not even for an object without any changes",
				func(w *harness) {
					w.serveStatus(subresource)
					registered := []*handlers.Handler{onCreate("a", ok), onUpdate("u", ok), onDelete("d", ok)}
					w.startWith(way.from, registered...).settle()
					w.wantCalls("created", "0s create a")
					w.drainWrites()
					w.startWith(both(way.to, way.from), registered...).settle()
					w.want("one request moves all", 1, len(w.drainWrites()))
					w.startWith(both(way.to, way.from), registered...).settle()
					w.wantWrites("moved")
					p := w.startWith(way.to, registered...)
					p.settle()
					w.wantCalls("moved")
					w.wantWrites("moved")
					w.set("two", "spec", "field")
					p.settle()
					w.wantCalls("updated", "0s update u")
					w.want("errors", []error(nil), p.errs)
				}}
			scenarios[name+kind+"HalfDone"] = scenario{"successes, attempts and delays of an unfinished creation are " +
				"moved", func(w *harness) {
				w.serveStatus(subresource)
				registered := []*handlers.Handler{
					onCreate("a", ok), onCreate("b", fails(1, later), retries(2)), onUpdate("u", ok),
				}
				_, _ = w.startWith(way.from, registered...).pass()
				_, _ = w.startWith(both(way.to, way.from), registered...).pass()
				w.startWith(way.to, registered...).settle()
				w.wantCalls("all", "0s create a", "0s create b", "1h0m0s create b")
				w.set("two", "spec", "field")
				w.startWith(way.to, registered...).settle()
				w.wantCalls("updated", "1h0m0s update u")
			}}
			run(t, scenarios)
		}
	}
}

func TestStatusStorages(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		"Dropped": {"a status that the CRD drops causes errors, but no repeated calls, and recovers when the CRD " +
			"keeps it", func(w *harness) {
			w.webhook = func(body map[string]any) { put(body, nil, "status") }
			p := w.startWith(statusStores, onCreate("a", ok), onUpdate("u", ok))
			for range 5 {
				_, err := p.pass()
				w.want("fails", true, err != nil)
			}
			w.wantCalls("dropped", "0s create a")
			w.webhook = nil
			p.settle()
			w.wantCalls("kept")
			w.want("handled", "{\"spec\":{\"field\":\"one\"}}", w.at("status", "kopf", inStatus))
		}},
		"DroppedProgress": {"dropped progress repeats no calls, and recovers when the CRD keeps it", func(w *harness) {
			w.webhook = func(body map[string]any) { put(body, nil, "status") }
			p := w.startWith(statusStores, onCreate("a", fails(1, later)))
			for range 5 {
				_, _ = p.pass()
			}
			w.wantCalls("dropped", "0s create a")
			w.webhook = nil
			p.settle()
			w.wantCalls("kept", "10s create a")
		}},
		"NewPlaceDropped": {"a move to a status that is dropped is an error without losses", func(w *harness) {
			w.startWith(annotationStores, onCreate("a", ok)).settle()
			w.webhook = func(body map[string]any) { put(body, nil, "status") }
			p := w.startWith(both(statusStores, annotationStores), onCreate("a", ok))
			_, err := p.pass()
			w.want("fails", true, err != nil)
			w.webhook = nil
			p.settle()
			w.wantCalls("all", "0s create a")
		}},
		"MoveBinds": {"a move binds the memory, so that a copy is created as a new object",
			func(w *harness) {
				registered := []*handlers.Handler{onCreate("a", ok)}
				w.startWith(annotationStores, registered...).settle()
				w.set(nil, "metadata", "annotations", boundToAnnotation)
				w.startWith(both(otherPrefixStores, annotationStores), registered...).settle()
				w.wantAt("moved", "uid-1", "metadata", "annotations", boundToAnnotation)
				w.copyOf(w.stored())
				w.startWith(both(otherPrefixStores, annotationStores), registered...).settle()
				w.wantCalls("copied", "0s create a")
			}},
		"LeastRequests": {"memory in the status needs one request for each write", func(w *harness) {
			w.serveStatus(true)
			registered := []*handlers.Handler{onCreate("a", fails(1, later)), onUpdate("u", fails(1, later))}
			p := w.startWith(statusStores, registered...)
			p.settle()
			w.wantWrites("the creation, with the uid in an annotation once", "status 200", "main 200", "status 200")
			w.set("two", "spec", "field")
			p.settle()
			w.wantWrites("update", "status 200", "status 200")
			w.want("no records", nil, w.at("status", "kopf", "progress", "u"))
		}},
		"InterimEdited": {"interim memory is stored in an annotation, so an edit becomes an update", func(w *harness) {
			w.serveStatus(true)
			registered := []*handlers.Handler{onCreate("a", ok), onCreate("b", fails(1, later)), onUpdate("u", ok)}
			_, _ = w.startWith(statusStores, registered...).pass()
			w.set("two", "spec", "field")
			w.startWith(statusStores, registered...).settle()
			w.wantCalls("all", "0s create a", "0s create b", "10s create b", "10s update u")
		}},
		"Copy": {"memory of another object in the status is ignored", func(w *harness) {
			registered := []*handlers.Handler{onCreate("a", ok), onUpdate("u", ok)}
			w.startWith(both(statusStores, otherPrefixStores), registered...).settle()
			w.copyOf(w.stored())
			w.startWith(both(statusStores, otherPrefixStores), registered...).settle()
			w.wantCalls("all", "0s create a")
		}},
	})
}

// boxed is a storage of a user that wraps a known storage and keeps the essence in a list.
type boxed struct{ diffbase.Annotations }

func (b boxed) Fetch(body map[string]any) (diffbase.Essence, error) {
	list, _ := at(body, "status", "box").([]any)
	if len(list) == 0 {
		return nil, nil
	}
	return list[0].(map[string]any), nil
}

func (b boxed) Store(patch, _ map[string]any, essence diffbase.Essence) error {
	put(patch, []any{essence}, "status", "box")
	return nil
}

func TestOwnStorage(t *testing.T) {
	own := stores{boxed{}, progress.Status{Field: []string{"status", "records"}}}
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		"Lives": {"a storage of a user works like the built-in ones", func(w *harness) {
			w.serveStatus(true)
			registered := []*handlers.Handler{onCreate("a", fails(1, later)), onUpdate("u", ok), onDelete("d", ok)}
			w.startWith(own, registered...).settle()
			p := w.startWith(own, registered...)
			p.settle()
			w.set("two", "spec", "field")
			p.settle()
			w.delete()
			p.settle()
			w.wantCalls("all", "0s create a", "10s create a", "10s update u", "10s delete d")
			w.want("gone", true, p.gone)
		}},
		"Copied": {"memory of another object in a storage of a user is ignored", func(w *harness) {
			registered := []*handlers.Handler{onCreate("a", ok), onUpdate("u", ok)}
			w.startWith(own, registered...).settle()
			w.copyOf(w.stored())
			w.startWith(own, registered...).settle()
			w.wantCalls("all", "0s create a")
		}},
	})
}
