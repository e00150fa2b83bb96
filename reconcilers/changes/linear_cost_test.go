package changes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/test/growth"
)

// eager declares and runs one sub-handler after another.
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

// ordered declares sub-handlers that come after others, the last one first.
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

// remembered is an object in the middle of its creation, with records as anybody may write them.
func remembered(w *world, records map[string]any) {
	for id, record := range records {
		text, err := json.Marshal(record)
		if err != nil {
			w.t.Fatal(err)
		}
		w.set(string(text), "metadata", "annotations", prefix+"/"+id)
	}
}

// alias spells a number in characters that an annotation has one for.
func alias(i int) string {
	var b strings.Builder
	for bit := range 20 {
		b.WriteString("x" + string("/."[i>>bit&1]))
	}
	return "a/" + b.String() + "x"
}

// TestLinear is about what the number of sub-handlers costs, and the memory that anybody may write to an object.
func TestLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	many := func(int) handlers.Func { return ok }
	tests := map[string]struct {
		reason string
		size   int
		start  func(w *world, size int) *process
	}{
		"Parts": {"as many parts, as much work", 1000, func(w *world, size int) *process {
			return w.compact(onCreate("a", declares(size, many)))
		}},
		"PartsAsKopf": {"in Kopf's form, too", 300, func(w *world, size int) *process {
			return w.startWith(annotated, onCreate("a", declares(size, many)))
		}},
		"MorePartsThanFit": {"those that do not fit are no more work, either", 2000, func(w *world, size int) *process {
			return w.startWith(annotated, onCreate("a", declares(size, many)))
		}},
		"PartsOneByOne": {"those that are done are not looked at for each of the others", 1000,
			func(w *world, size int) *process {
				return w.compact(onCreate("a", eager(size, ok)))
			}},
		"PartsInAChain": {"each waits for the one before", 1000, func(w *world, size int) *process {
			return w.compact(onCreate("a", ordered(size, func(i int) (ids []string) {
				if i > 0 {
					ids = append(ids, part(i-1))
				}
				return ids
			})))
		}},
		"PartsAfterAll": {"one waits for all the others", 1000, func(w *world, size int) *process {
			return w.compact(onCreate("a", ordered(size, func(i int) (ids []string) {
				for before := range size - 1 {
					if i == size-1 {
						ids = append(ids, part(before))
					}
				}
				return ids
			})))
		}},
		"PartsWithin": {"parts of parts", 40, func(w *world, size int) *process {
			return w.compact(onCreate("a", declares(size, func(int) handlers.Func { return declares(20, many) })))
		}},
		"Succeeded": {"the names of those that succeeded", 4000, func(w *world, size int) *process {
			names := make([]any, size)
			for i := range names {
				names[i] = part(i)
			}
			remembered(w, map[string]any{"a": map[string]any{"purpose": "create", "succeeded": names}})
			return w.compact(onCreate("a", declares(size, many)))
		}},
		"Aliases": {"a record that is mentioned by many names is not read as often", 500,
			func(w *world, size int) *process {
				aliases := make([]any, size)
				for i := range aliases {
					aliases[i] = alias(i)
				}
				remembered(w, map[string]any{
					"a":                                    map[string]any{"purpose": "create", "subrefs": aliases},
					strings.ReplaceAll(alias(0), "/", "."): map[string]any{"purpose": "create", "subrefs": aliases},
				})
				return w.startWith(annotated, onCreate("a", ok))
			}},
		"Repeated": {"nor is one that is mentioned by one name many times", 1000, func(w *world, size int) *process {
			refs := make([]any, size)
			for i := range refs {
				refs[i] = "a/x"
			}
			remembered(w, map[string]any{
				"a": map[string]any{
					"purpose": "create", "subrefs": refs,
				}, "a.x": map[string]any{"purpose": "create", "subrefs": refs},
			})
			return w.startWith(annotated, onCreate("a", ok))
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			growth.Linear(t, tc.size, func(size int) func() {
				w := &world{server: newServer(), t: t, started: time.Now()}
				w.create(object())
				p := tc.start(w, size)
				p.handling.Checkpoint = time.Hour // a machine that stalls writes no more often than others
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

// Digests that anybody may write cost a pass no more than honest ones of the same number.
func TestForgedDigestsLinear(t *testing.T) {
	growth.Linear(t, 1000, func(size int) func() {
		w := &world{server: newServer(), t: t, started: time.Now()}
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
		w.set(string(text), "metadata", "annotations", handled)
		p := w.start(onUpdate("u", ok))
		return func() {
			if _, err := p.pass(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
