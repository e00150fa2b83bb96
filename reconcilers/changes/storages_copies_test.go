package changes_test

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// full and fullProgress are storages that refuse every store.
type full struct{ diffbase.Annotations }

func (full) Store(map[string]any, map[string]any, diffbase.Essence) error { return errOrdinary }

type fullProgress struct{ progress.Annotations }

func (fullProgress) Store(map[string]any, map[string]any, string, progress.Record) error {
	return errOrdinary
}

var thirdPrefixStores = stores{
	diffbase.Annotations{Prefix: "third.example.org"}, progress.Annotations{Prefix: "third.example.org"},
}

// heldAnnotations returns those of the annotations that the object has.
func (w *harness) heldAnnotations(names ...string) (held []string) {
	for _, name := range names {
		if w.at("metadata", "annotations", name) != nil {
			held = append(held, name)
		}
	}
	return held
}

// TestCopiesInAllStorages shows how memory is copied to storages that lack it.
func TestCopiesInAllStorages(t *testing.T) {
	const essence, another = "else.example.org/" + inStatus, "third.example.org/" + inStatus
	hour := temporaryError{delay: time.Hour}
	run(t, map[string]scenario{
		"Behind": {"a storage listed after the present one gets a copy of the essence", func(w *harness) {
			w.startWith(annotationStores, onCreate("a", ok)).settle()
			w.startWith(both(annotationStores, otherPrefixStores), onCreate("a", ok)).settle()
			w.want("kept", []string{essence}, w.heldAnnotations(essence))
		}},
		"RecordsBehind": {"a storage listed after the present one gets copies of the records", func(w *harness) {
			_, _ = w.startWith(annotationStores, onCreate("a", ok), onCreate("b", fails(1, hour))).pass()
			_, _ = w.startWith(both(annotationStores, otherPrefixStores), onCreate("a", ok), onCreate("b", ok)).pass()
			names := []string{"else.example.org/a", "else.example.org/b"}
			w.want("kept", names, w.heldAnnotations(names...))
		}},
		"Resumed": {"essence and records are copied with one write", func(w *harness) {
			w.startWith(annotationStores, onCreate("a", ok)).settle()
			for _, s := range []stores{annotationStores, both(otherPrefixStores, annotationStores)} {
				w.drainWrites()
				p := w.startWith(s, onResume("r", fails(1, hour)))
				p.memory.Initial = true
				_, _ = p.pass()
			}
			w.wantWrites("moved", "main 200")
			w.want("kept", []string{essence, "else.example.org/r"}, w.heldAnnotations(essence, "else.example.org/r"))
		}},
		"Nested": {"nested storages get copies as well", func(w *harness) {
			w.startWith(annotationStores, onCreate("a", ok)).settle()
			p := w.startWith(annotationStores, onCreate("a", ok))
			p.handling.Lens.Diffbase = diffbase.Multi{
				annotationStores.diffbase, diffbase.Multi{otherPrefixStores.diffbase}, thirdPrefixStores.diffbase,
			}
			p.settle()
			w.want("kept", []string{essence, another}, w.heldAnnotations(essence, another))
		}},
		"Malformed": {"a malformed storage that is not read does not prevent copies to the others", func(w *harness) {
			w.startWith(annotationStores, onCreate("a", ok)).settle()
			w.set("{", "metadata", "annotations", essence)
			p := w.startWith(annotationStores, onCreate("a", ok))
			p.handling.Lens.Diffbase = diffbase.Multi{annotationStores.diffbase, otherPrefixStores.diffbase,
				thirdPrefixStores.diffbase}
			p.settle()
			w.want("kept", []string{another}, w.heldAnnotations(another))
			w.wantAt("repaired with the next change only", "{", "metadata", "annotations", essence)
		}},
		"Updated": {"an update writes all storages, without a separate write for the copies", func(w *harness) {
			registered := onUpdate("u", ok)
			w.startWith(annotationStores, registered).settle()
			w.set("two", "spec", "field")
			w.drainWrites()
			w.startWith(both(otherPrefixStores, annotationStores), registered).settle()
			w.wantWrites("updated", "main 200")
			w.want("kept", []string{essence}, w.heldAnnotations(essence))
		}},
		"Deleted": {"nothing is copied during a deletion", func(w *harness) {
			p := w.startWith(annotationStores, onDelete("d", fails(1, hour)))
			p.settle()
			w.delete()
			_, _ = p.pass()
			w.drainWrites()
			_, _ = w.startWith(both(otherPrefixStores, annotationStores), onDelete("d", ok)).pass()
			w.wantWrites("moved")
		}},
		"Unwanted": {"nothing is copied for an object that matches no handler", func(w *harness) {
			w.startWith(annotationStores, onCreate("a", ok)).settle()
			w.drainWrites()
			w.startWith(both(otherPrefixStores, annotationStores), onCreate("a", ok, ifLabelled)).settle()
			w.wantWrites("moved")
		}},
		"Subrefs": {"records of sub-handlers are copied, also if listed in two spellings or missing",
			func(w *harness) {
				record := map[string]any{"purpose": "create", "delayed": "9999-01-01T00:00:00Z", "retries": int64(1)}
				for _, name := range []string{"a.s.x", "a.z", "a"} {
					if name == "a" {
						record["subrefs"] = []any{"a/none", "a/s.x", "a/s/x", "a/z"}
					}
					w.set(string(encoded(record)), "metadata", "annotations", prefix+"/"+name)
				}
				_, _ = w.startWith(both(annotationStores, otherPrefixStores), onCreate("a", ok)).pass()
				names := []string{"else.example.org/a", "else.example.org/a.s.x", "else.example.org/a.z"}
				w.want("kept", names, w.heldAnnotations(names...))
			}},
	})
}

// TestCopiesThatFail shows that a failed copy is an error without losses and without calls of handlers.
func TestCopiesThatFail(t *testing.T) {
	const kept = "did not keep"
	waits := fails(1, temporaryError{delay: time.Hour})
	failing := func(w *harness, p *process, is func(error) bool, writes ...string) {
		w.calls()
		w.drainWrites()
		if _, err := p.pass(); !is(err) {
			w.t.Errorf("unexpected error of the pass: %v", err)
		}
		w.wantWrites("failed", writes...)
		w.wantCalls("failed")
		w.wantHandled("failed", "one")
	}
	ordinary := func(err error) bool { return err != nil && strings.Contains(err.Error(), errOrdinary.Error()) }
	run(t, map[string]scenario{
		"Forbidden": {"a forbidden copy returns the error of the write", func(w *harness) {
			w.startWith(annotationStores, onCreate("a", ok)).settle()
			w.forbidWrites(time.Second)
			p := w.startWith(both(otherPrefixStores, annotationStores), onCreate("a", ok))
			failing(w, p, func(err error) bool {
				return apierrors.IsForbidden(err) && !strings.Contains(err.Error(), kept)
			}, "main 403")
		}},
		"Dropped": {"a dropped copy is an error and is not retried in the same pass", func(w *harness) {
			w.startWith(annotationStores, onCreate("a", ok)).settle()
			w.webhook = func(body map[string]any) { put(body, nil, "status") }
			p := w.startWith(both(statusStores, annotationStores), onCreate("a", ok))
			failing(w, p, func(err error) bool { return err != nil && strings.Contains(err.Error(), kept) }, "main 200")
		}},
		"Full": {"a storage that refuses the essence is an error without a write", func(w *harness) {
			w.startWith(annotationStores, onCreate("a", ok)).settle()
			p := w.startWith(annotationStores, onCreate("a", ok))
			p.handling.Lens.Diffbase = diffbase.Multi{annotationStores.diffbase, diffbase.Multi{full{}}}
			failing(w, p, ordinary)
		}},
		"FullOfRecords": {"a storage that refuses a record is an error without a write", func(w *harness) {
			w.startWith(annotationStores, onCreate("a", ok)).settle()
			p := w.startWith(annotationStores, onResume("r", waits))
			p.memory.Initial = true
			_, _ = p.pass()
			own := progress.Multi{annotationStores.progress, fullProgress{}}
			p = w.startWith(stores{annotationStores.diffbase, own}, onResume("r", ok))
			p.memory.Initial = true
			failing(w, p, ordinary)
		}},
		"Gone": {"an object that is deleted during the copy is gone without an error", func(w *harness) {
			w.startWith(annotationStores, onCreate("a", ok)).settle()
			w.before = func(write) error { w.delete(); return nil }
			next, err := w.startWith(both(otherPrefixStores, annotationStores), onCreate("a", ok)).pass()
			w.want("gone, error", []any{true, nil}, []any{next.Gone, err})
		}},
		"TakenAway": {"memory that is removed during the copy is restored without a call", func(w *harness) {
			w.startWith(annotationStores, onCreate("a", ok)).settle()
			w.calls()
			w.webhook = func(body map[string]any) { put(body, nil, "metadata", "annotations"); w.webhook = nil }
			p := w.startWith(both(otherPrefixStores, annotationStores), onCreate("a", ok))
			p.settle()
			w.wantCalls("all")
			w.wantHandled("all", "one")
			w.want("errors", []error(nil), p.errs)
		}},
	})
}
