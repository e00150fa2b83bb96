package changes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// onField sees one field, and notes how it has changed.
func (w *world) onField(id string, path ...string) *handlers.Handler {
	h := &handlers.Handler{ID: id, Field: path, NeedsChange: true}
	h.Call = func(_ context.Context, c *handlers.Invocation) error {
		before, after, _ := h.View(c.Cause)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.journal[len(w.journal)-1] += fmt.Sprintf(": %v, %v", before, after)
		return nil
	}
	return h
}

// TestFieldsInsideOfScalars is about fields that lead through something else than a mapping: the object does not have
// them, which concerns the handlers of these fields alone (deviation D-field-in-scalar).
func TestFieldsInsideOfScalars(t *testing.T) {
	run(t, map[string]scenario{
		"Others": {"the object is handled by all others", func(w *world) {
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
		"Told": {"it is told which they are", func(w *world) {
			w.start(
				w.onField("f", "spec", "field", "c"), onCreate("a", ok), w.onField("g", "spec", "field"),
			).settle()
			w.want("told", true, w.hasLogged("cannot have the field of a handler", `"handlers"=["f"]`))
		}},
		"Becomes": {"once there is a mapping, the field is a new one; and is gone when there is none", func(w *world) {
			p := w.start(w.onField("f", "spec", "field", "c"), onUpdate("u", ok))
			p.settle()
			w.set(map[string]any{"c": int64(1)}, "spec", "field")
			p.settle()
			w.wantCalls("a mapping", "0s update f: <nil>, 1", "0s update u")
			w.set("two", "spec", "field")
			p.settle()
			w.wantCalls("none", "0s update f: 1, <nil>", "0s update u")
			p.settle()
			w.wantCalls("at rest")
		}},
		"Outside": {"so it is with fields that are no change otherwise", func(w *world) {
			w.set("text", "status", "a")
			p := w.start(w.onField("f", "status", "a", "b"), onCreate("a", ok), onUpdate("u", ok))
			p.settle()
			w.wantCalls("creation", "0s create a")
			w.set("other", "status", "a")
			p.settle()
			w.wantCalls("the text is nobody's")
			w.set(map[string]any{"b": int64(1), "x": "y"}, "status", "a")
			p.settle()
			w.wantCalls("a mapping", "0s update f: <nil>, 1", "0s update u")
			w.want(
				"handled last", map[string]any{"a": map[string]any{"b": int64(1)}}, at(w.annotation(handled), "status"),
			)
			w.set("text", "status", "a")
			p.settle()
			w.wantCalls("none", "0s update f: 1, <nil>", "0s update u")
			w.want("handled last", nil, at(w.annotation(handled), "status"))
		}},
		"Two": {"one field that is there and one that is not do not disturb each other", func(w *world) {
			w.set(map[string]any{"x": int64(1)}, "status", "b")
			w.set([]any{int64(1)}, "status", "a")
			p := w.start(w.onField("f", "status", "a", "0"), w.onField("g", "status", "b", "x"))
			p.settle()
			w.wantCalls("creation", "0s create g: <nil>, 1")
			w.set(int64(2), "status", "b", "x")
			p.settle()
			w.wantCalls("update", "0s update g: 1, 2")
		}},
		"Deleted": {"deletions are no exception", func(w *world) {
			p := w.start(w.onField("f", "spec", "field", "c"), onDelete("d", ok))
			p.settle()
			w.delete()
			p.settle()
			w.wantCalls("all", "0s delete d")
			w.want("stored", map[string]any(nil), w.stored())
		}},
		"Patterns": {"it is absent for those who ask", func(w *world) {
			absent, present := onCreate("absent", ok), onCreate("present", ok)
			for _, h := range []*handlers.Handler{absent, present} {
				h.Field = diff.Path{"spec", "field", "c"}
			}
			absent.Value = handlers.Absent
			w.start(absent, present).settle()
			w.wantCalls("all", "0s create absent")
		}},
	})
}

// It is said once, with the field and its handlers, and again when it has changed.
func TestFieldsInsideOfScalarsAreTold(t *testing.T) {
	tests := map[string]struct {
		reason string
		path   string
		values []any
		want   int
	}{
		"Once":     {"not for each pass", "spec.field.c", []any{"two", "three"}, 1},
		"Again":    {"but when it has been right", "spec.field.c", []any{map[string]any{"c": "x"}, "three"}, 2},
		"Absent":   {"a field that is not there is nothing to tell of", "spec.other.c", []any{"two"}, 0},
		"Null":     {"neither is one inside of a null", "spec.null.c", []any{"two"}, 0},
		"InAList":  {"a list is not a mapping", "spec.list.0", []any{"two"}, 1},
		"NotThere": {"nor is a mapping without it any trouble", "spec.mapping.c", []any{"two"}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, map[string]scenario{"": {tc.reason, func(w *world) {
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
				for _, line := range w.logged {
					if strings.Contains(
						line, "cannot have the field",
					) && strings.Contains(line, tc.path) && strings.Contains(line, `"handlers"=["f"]`) {
						told++
					}
				}
				if d := cmp.Diff(tc.want, told); d != "" {
					t.Errorf("%s: lines: -want, +got:\n%s\n%s", tc.reason, d, strings.Join(w.logged, "\n"))
				}
				if tc.want == 0 && !p.memory.Idle() {
					t.Error("there is nothing to be remembered")
				}
			}}})
		})
	}
}
