package changes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/test/growth"
)

// eager returns a handler that declares and runs n sub-handlers, one after another.
func eager(n int, fn handlers.Func) handlers.Func {
	return func(ctx context.Context, c *handlers.Invocation) error {
		for i := range n {
			if err := c.Subs.Declare(&handlers.Handler{ID: part(i), Call: fn}); err != nil {
				return err
			}
			if err := c.Subs.Run(ctx, nil); err != nil {
				return err
			}
		}
		return nil
	}
}

// ordered returns a handler that declares n sub-handlers with dependencies, the last one first.
func ordered(n int, before func(i int) []string) handlers.Func {
	return func(_ context.Context, c *handlers.Invocation) error {
		for i := n - 1; i >= 0; i-- {
			if err := c.Subs.Declare(sub(part(i), ok, afterSuccess(before(i)...))); err != nil {
				return err
			}
		}
		return nil
	}
}

// storeRecords stores forged records of an unfinished creation on the object.
func storeRecords(w *harness, records map[string]any) {
	for id, record := range records {
		text, err := json.Marshal(record)
		if err != nil {
			w.t.Fatal(err)
		}
		w.set(string(text), "metadata", "annotations", prefix+"/"+id)
	}
}

// alias encodes a number as one of the spellings that share an annotation.
func alias(i int) string {
	var b strings.Builder
	for bit := range 20 {
		b.WriteString("x" + string("/."[i>>bit&1]))
	}
	return "a/" + b.String() + "x"
}

// TestLinear shows that the cost of a pass grows linearly with the number of sub-handlers, and with forged memory on
// the object.
func TestLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	many := func(int) handlers.Func { return ok }
	tests := map[string]struct {
		reason string
		size   int
		start  func(w *harness, size int) *process
	}{
		"Parts": {"the cost is linear in the number of sub-handlers", 1000, func(w *harness, size int) *process {
			return w.compact(onCreate("a", declares(size, many)))
		}},
		"PartsAsKopf": {"the cost is linear in the number of sub-handlers with the records of Kopf",
			300, func(w *harness, size int) *process {
				return w.startWith(annotationStores, onCreate("a", declares(size, many)))
			}},
		"MorePartsThanFit": {"the cost is linear if most sub-handlers do not fit",
			2000, func(w *harness, size int) *process {
				return w.startWith(annotationStores, onCreate("a", declares(size, many)))
			}},
		"PartsOneByOne": {"finished sub-handlers are not visited again for each new one", 1000,
			func(w *harness, size int) *process {
				return w.compact(onCreate("a", eager(size, ok)))
			}},
		"PartsInAChain": {"the cost is linear if each sub-handler depends on the one before",
			1000, func(w *harness, size int) *process {
				return w.compact(onCreate("a", ordered(size, func(i int) (ids []string) {
					if i > 0 {
						ids = append(ids, part(i-1))
					}
					return ids
				})))
			}},
		"PartsAfterAll": {"the cost is linear if one sub-handler depends on all others",
			1000, func(w *harness, size int) *process {
				return w.compact(onCreate("a", ordered(size, func(i int) (ids []string) {
					for before := range size - 1 {
						if i == size-1 {
							ids = append(ids, part(before))
						}
					}
					return ids
				})))
			}},
		"PartsWithin": {"the cost is linear for sub-handlers of sub-handlers", 40, func(w *harness, size int) *process {
			return w.compact(onCreate("a", declares(size, func(int) handlers.Func { return declares(20, many) })))
		}},
		"Succeeded": {"the cost is linear in the number of recorded successes",
			4000, func(w *harness, size int) *process {
				names := make([]any, size)
				for i := range names {
					names[i] = part(i)
				}
				storeRecords(w, map[string]any{"a": map[string]any{"purpose": "create", "succeeded": names}})
				return w.compact(onCreate("a", declares(size, many)))
			}},
		"Aliases": {"a record with many spellings is not read once for each of them", 500,
			func(w *harness, size int) *process {
				aliases := make([]any, size)
				for i := range aliases {
					aliases[i] = alias(i)
				}
				storeRecords(w, map[string]any{
					"a":                                    map[string]any{"purpose": "create", "subrefs": aliases},
					strings.ReplaceAll(alias(0), "/", "."): map[string]any{"purpose": "create", "subrefs": aliases},
				})
				return w.startWith(annotationStores, onCreate("a", ok))
			}},
		"Repeated": {"a record that is listed many times is not read as often",
			1000, func(w *harness, size int) *process {
				refs := make([]any, size)
				for i := range refs {
					refs[i] = "a/x"
				}
				storeRecords(w, map[string]any{
					"a": map[string]any{
						"purpose": "create", "subrefs": refs,
					}, "a.x": map[string]any{"purpose": "create", "subrefs": refs},
				})
				return w.startWith(annotationStores, onCreate("a", ok))
			}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			growth.Linear(t, tc.size, func(size int) func() {
				w := &harness{server: newServer(), t: t, started: time.Now()}
				w.create(object())
				p := tc.start(w, size)
				p.handling.Checkpoint = time.Hour // slow machines must not write more often
				return func() {
					if _, err := p.pass(); err != nil {
						t.Fatal(err)
					}
				}
			})
			if t.Failed() {
				t.Log("the reason of this case:", tc.reason)
			}
		})
	}
}

// TestForgedDigestsLinear shows that the cost of a pass is linear in the number of forged digests.
func TestForgedDigestsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	growth.Linear(t, 1000, func(size int) func() {
		w := &harness{server: newServer(), t: t, started: time.Now()}
		w.create(object())
		spec, paths := map[string]any{"field": "one"}, make([]any, size)
		for i := range size {
			spec[fmt.Sprint("field", i)] = "x"
			paths[i] = []any{"spec", fmt.Sprint("field", i)}
		}
		w.set(spec, "spec")
		text, err := json.Marshal(map[string]any{"spec": spec, "$digests": paths})
		if err != nil {
			t.Fatal(err)
		}
		w.set(string(text), "metadata", "annotations", handledAnnotation)
		p := w.start(onUpdate("u", ok))
		return func() {
			if _, err := p.pass(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
