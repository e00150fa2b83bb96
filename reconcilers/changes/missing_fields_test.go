package changes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// onField returns a handler of one field that records the old and the new value.
func (w *harness) onField(id string, path ...string) *handlers.Handler {
	h := &handlers.Handler{ID: id, Field: path, NeedsChange: true}
	h.Call = func(_ context.Context, c *handlers.Invocation) error {
		before, after, _ := h.ViewCause(c.Cause)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.journal[len(w.journal)-1] += fmt.Sprintf(": %v, %v", before, after)
		return nil
	}
	return h
}

// TestFieldsInsideOfScalars shows that a field below something other than a mapping is missing, which affects only the
// handlers of this field (deviation D-field-in-scalar).
func TestFieldsInsideOfScalars(t *testing.T) {
	run(t, map[string]scenario{
		"Others": {"a missing field of one handler does not affect other handlers", func(w *harness) {
			p := w.start(
				w.onField("f", "spec", "field", "c"), onCreate("a", ok), onUpdate("u", ok),
				w.onField("g", "spec", "field"),
			)
			p.settle()
			w.wantCalls("creation", "0s create a", "0s create g: <nil>, one")
			w.wantHandled("creation", "one")
			w.set("two", "spec", "field")
			p.settle()
			w.wantCalls("update", "0s update u", "0s update g: one, two")
			w.wantHandled("update", "two")
			w.wantClean("all")
			w.want("errors", []error(nil), p.errs)
		}},
		"Told": {"the log names the handlers of the missing field", func(w *harness) {
			w.start(
				w.onField("f", "spec", "field", "c"), onCreate("a", ok), w.onField("g", "spec", "field"),
			).settle()
			w.want("logged", true, w.hasLogged("cannot have the field of a handler", `"handlers"=["f"]`))
		}},
		"Becomes": {"the field is added and removed with the mapping that contains it", func(w *harness) {
			p := w.start(w.onField("f", "spec", "field", "c"), onUpdate("u", ok))
			p.settle()
			w.set(map[string]any{"c": int64(1)}, "spec", "field")
			p.settle()
			w.wantCalls("a mapping", "0s update f: <nil>, 1", "0s update u")
			w.set("two", "spec", "field")
			p.settle()
			w.wantCalls("a text again", "0s update f: 1, <nil>", "0s update u")
			p.settle()
			w.wantCalls("settled")
		}},
		"Outside": {"a missing field outside of the essence is added and removed with its mapping", func(w *harness) {
			w.set("text", "status", "a")
			p := w.start(w.onField("f", "status", "a", "b"), onCreate("a", ok), onUpdate("u", ok))
			p.settle()
			w.wantCalls("creation", "0s create a")
			w.set("other", "status", "a")
			p.settle()
			w.wantCalls("a text that no handler selects")
			w.set(map[string]any{"b": int64(1), "x": "y"}, "status", "a")
			p.settle()
			w.wantCalls("a mapping", "0s update f: <nil>, 1", "0s update u")
			w.want(
				"handled last", map[string]any{"a": map[string]any{"b": int64(1)}},
				at(w.annotation(handledAnnotation), "status"),
			)
			w.set("text", "status", "a")
			p.settle()
			w.wantCalls("a text again", "0s update f: 1, <nil>", "0s update u")
			w.want("handled last", nil, at(w.annotation(handledAnnotation), "status"))
		}},
		"Two": {"a missing field does not affect the handler of an existing field", func(w *harness) {
			w.set(map[string]any{"x": int64(1)}, "status", "b")
			w.set([]any{int64(1)}, "status", "a")
			p := w.start(w.onField("f", "status", "a", "0"), w.onField("g", "status", "b", "x"))
			p.settle()
			w.wantCalls("creation", "0s create g: <nil>, 1")
			w.set(int64(2), "status", "b", "x")
			p.settle()
			w.wantCalls("update", "0s update g: 1, 2")
		}},
		"Deleted": {"an object with a missing field is deleted as usual", func(w *harness) {
			p := w.start(w.onField("f", "spec", "field", "c"), onDelete("d", ok))
			p.settle()
			w.delete()
			p.settle()
			w.wantCalls("all", "0s delete d")
			w.want("stored", map[string]any(nil), w.stored())
		}},
		"Patterns": {"a missing field matches a handler for an absent value", func(w *harness) {
			absent, present := onCreate("absent", ok), onCreate("present", ok)
			for _, h := range []*handlers.Handler{absent, present} {
				h.Field = diff.Path{"spec", "field", "c"}
			}
			absent.Value = handlers.IsAbsent
			w.start(absent, present).settle()
			w.wantCalls("all", "0s create absent")
		}},
	})
}

// TestMissingFieldsAreLogged shows that a missing field is logged once with its handlers, and again after it was
// present.
func TestMissingFieldsAreLogged(t *testing.T) {
	tests := map[string]struct {
		reason string
		path   string
		values []any
		want   int
	}{
		"Once": {"a missing field is logged once, not in each pass", "spec.field.c", []any{"two", "three"}, 1},
		"Again": {"a field that was there is logged again",
			"spec.field.c", []any{map[string]any{"c": "x"}, "three"}, 2},
		"Absent":   {"a field of an absent parent is not logged", "spec.other.c", []any{"two"}, 0},
		"Null":     {"a field inside of null is not logged", "spec.null.c", []any{"two"}, 0},
		"InAList":  {"a field inside of a list is logged", "spec.list.0", []any{"two"}, 1},
		"NotThere": {"a field that is absent from a mapping is not logged", "spec.mapping.c", []any{"two"}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, map[string]scenario{"": {tc.reason, func(w *harness) {
				w.edit(func(body map[string]any) {
					body["spec"].(map[string]any)["null"] = nil
					put(body, []any{"x"}, "spec", "list")
					put(body, map[string]any{}, "spec", "mapping")
				})
				p := w.start(w.onField("f", strings.Split(tc.path, ".")...), onUpdate("u", ok))
				p.settle()
				for _, value := range tc.values {
					w.set(value, "spec", "field")
					p.settle()
				}
				told := 0
				for _, line := range w.logLines {
					if strings.Contains(
						line, "cannot have the field",
					) && strings.Contains(line, tc.path) && strings.Contains(line, `"handlers"=["f"]`) {
						told++
					}
				}
				if d := cmp.Diff(tc.want, told); d != "" {
					t.Errorf("%s: lines: -want, +got:\n%s\n%s", tc.reason, d, strings.Join(w.logLines, "\n"))
				}
				if tc.want == 0 && !p.memory.IsEmpty() {
					t.Error("the memory is not idle")
				}
			}}})
		})
	}
}
