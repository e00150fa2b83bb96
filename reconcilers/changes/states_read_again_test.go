package changes_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// oneAnnotation stores the ids of all handlers that failed once in one annotation.
type oneAnnotation struct{ progress.Annotations }

func (oneAnnotation) Fetch(body map[string]any, id string) (*progress.Record, error) {
	value, _ := diff.ResolvePath(body, diff.Path{"metadata", "annotations", "example.org/all"})
	if text, _ := value.(string); !strings.Contains(text, id) {
		return nil, nil
	}
	return &progress.Record{Retries: ptr.To(int64(1))}, nil
}

func (oneAnnotation) Store(patch, _ map[string]any, id string, _ progress.Record) error {
	put(patch, id, "metadata", "annotations", "example.org/all")
	return nil
}

// TestStatesAreReadAgain shows which states a pass reads again, although it reads each version of the object once.
func TestStatesAreReadAgain(t *testing.T) {
	later := temporaryError{delay: time.Minute}
	failing := fails(9, later)
	refused := func(w *harness, p *process) {
		w.t.Helper()
		if _, err := p.pass(); err == nil || !strings.Contains(err.Error(), "did not keep") {
			w.t.Errorf("want an error about values that were not kept, got %v", err)
		}
	}
	run(t, map[string]scenario{
		"OldText": {"a webhook that restores the former text of an annotation causes an error", func(w *harness) {
			w.set("none", "metadata", "annotations", "example.org/all")
			w.webhook = func(body map[string]any) { put(body, "none", "metadata", "annotations", "example.org/all") }
			refused(w, w.startWith(stores{annotationStores.diffbase, oneAnnotation{}}, onCreate("c", failing)))
		}},
		"Apart": {"a webhook that removes separate memory causes an error", func(w *harness) {
			p := w.start(onCreate("c", ok))
			p.settle()
			w.edit(func(body map[string]any) {
				put(body, "of-another", "metadata", "annotations", boundToAnnotation)
				put(body, `{"spec":{"field":"of another"}}`, "metadata", "annotations", handledAnnotation)
			})
			w.webhook = func(body map[string]any) {
				put(body, nil, "metadata", "annotations",
					handledAnnotation+separateSuffix)
			}
			refused(w, p)
		}},
		"Removed": {"a record that another client removes is missing after the next flush", func(w *harness) {
			for id, record := range map[string]any{
				"p":   map[string]any{"purpose": "create", "retries": 1, "subrefs": []any{"p/s"}},
				"p.s": map[string]any{"purpose": "create", "retries": 1, "success": true},
			} {
				w.set(string(encoded(record)), "metadata", "annotations", prefix+"/"+id)
			}
			var successes []bool
			asks := func(_ context.Context, c *handlers.Invocation) error {
				r, err := c.Subs.RecordOf("s")
				successes = append(successes, ptr.Deref(r.Success, false))
				return err
			}
			removes := func(context.Context, *handlers.Invocation) error {
				w.set(nil, "metadata", "annotations", prefix+"/p.s")
				return nil
			}
			p := w.startWith(annotationStores,
				onCreate("p", all(asks, removes, patches("x", "spec", "id"), flushes, asks)))
			_, _ = p.pass()
			w.want("successes", []bool{true, false}, successes)
		}},
		"Stale": {"interim memory without a binding is stale before the first success", func(w *harness) {
			w.start(onCreate("c", ok)).settle()
			w.set("two", "spec", "field")
			w.set(`{"spec":{"field":"two"}}`, "metadata", "annotations", interimAnnotation)
			_, _ = w.start(onUpdate("u", ok), onUpdate("v", failing)).pass()
			w.wantBeside("open", "two", "u", "success")
		}},
		"Malformed": {"a malformed record does not block the lost records of a deletion", func(w *harness) {
			p := w.start(onCreate("c", ok), onDelete("a", ok), onDelete("b", fails(3, later)))
			p.settle()
			w.delete()
			w.calls()
			_, _ = p.pass()
			w.edit(func(body map[string]any) {
				put(body, map[string]any{prefix + "/c": "{"}, "metadata", "annotations")
			})
			p.passEachMinute(1)
			w.edit(func(body map[string]any) { put(body, map[string]any{}, "metadata", "annotations") })
			p.passEachMinute(1)
			w.want("the success is restored", true, w.record("a", "success"))
			p.passEachMinute(1)
			w.want("calls", []string{"0s delete a", "0s delete b", "1m0s delete b", "2m0s delete b", "3m0s delete b"},
				w.calls())
		}},
		"Raw": {"a second storage gets an exact copy of the configuration", func(w *harness) {
			w.startWith(annotationStores, onCreate("c", ok)).settle()
			w.altered(handledAnnotation, func(memory map[string]any) {
				put(memory, "x", "metadata", "annotations", "else.example.org/zz")
			})
			w.startWith(both(otherPrefixStores, annotationStores), onCreate("c", ok)).settle()
			w.want("copied", "x", at(w.annotation("else.example.org/last-handled-configuration"),
				"metadata", "annotations", "else.example.org/zz"))
		}},
	})
}
