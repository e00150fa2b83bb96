package cause_test

import (
	"fmt"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/test/growth"
)

// wide has one mapping of many values.
func wide(size int, value string) diffbase.Essence {
	many := make(object, size)
	for i := range size {
		many[fmt.Sprint("field", i)] = value
	}
	return diffbase.Essence{"spec": many}
}

// deep has a value at each of many levels.
func deep(levels int, value any) diffbase.Essence {
	var inner any = object{"leaf": value}
	for range levels {
		inner = object{"leaf": value, "in": inner}
	}
	return diffbase.Essence{"spec": inner}
}

// sealing is the list of as many paths, as anybody may write it.
func sealing(size int, path func(i int) []any) []any {
	list := make([]any, size)
	for i := range list {
		list[i] = path(i)
	}
	return list
}

// TestLinear is about what tenants can write: the object, and what is taken for our memory on it.
func TestLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	one := func(i int) []any { return []any{"spec", fmt.Sprint("field", i)} }
	tests := map[string]struct {
		reason string
		size   int
		work   func(size int) (redaction cause.Redaction, stored, present diffbase.Essence)
	}{
		"Digests": {"the fields and the paths of digests of an object are not multiplied", 3000,
			func(size int) (cause.Redaction, diffbase.Essence, diffbase.Essence) {
				stored := wide(size, "forged")
				stored["$digests"] = sealing(size, one)
				return cause.Redaction{}, stored, wide(size, "x")
			}},
		"UselessDigests": {"nor are paths that lead nowhere", 3000,
			func(size int) (cause.Redaction, diffbase.Essence, diffbase.Essence) {
				stored := wide(size, "x")
				stored["$digests"] = sealing(size, func(i int) []any { return []any{"spec", fmt.Sprint("other", i)} })
				return cause.Redaction{}, stored, wide(size, "y")
			}},
		"LongPaths": {"a path may be as long as all that is stored", 20_000,
			func(size int) (cause.Redaction, diffbase.Essence, diffbase.Essence) {
				path := make([]any, size)
				for i := range path {
					path[i] = "in"
				}
				stored := deep(500, "x")
				stored["$digests"] = []any{path}
				return cause.Redaction{}, stored, deep(500, "y")
			}},
		"DeepDigests": {"digests in the depth of what is stored", 1000,
			func(size int) (cause.Redaction, diffbase.Essence, diffbase.Essence) {
				stored := deep(size, "forged")
				stored["$digests"] = []any{[]any{"spec"}}
				return cause.Redaction{}, stored, deep(size, "y")
			}},
		"DeepSecrets": {"secrets in the depth of the object", 1000,
			func(size int) (cause.Redaction, diffbase.Essence, diffbase.Essence) {
				return cause.Redaction{Paths: []diff.Path{{"spec"}}, Limit: 1000}, deep(size, "x"), deep(size, "y")
			}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			growth.Linear(t, tc.size, func(size int) func() {
				redaction, stored, present := tc.work(size)
				return func() {
					old, veiled := redaction.Recall(body, stored, present)
					cause.Detect(cause.Observation{Body: body, Old: old, New: present, Veiled: veiled})
					cause.Bare(old)
					for _, essence := range []diffbase.Essence{old, present} {
						for _, err := range redaction.Forms(body, essence) {
							if err != nil {
								t.Fatal(err)
							}
						}
					}
				}
			})
			if t.Failed() {
				t.Log("the reason of this case:", tc.reason)
			}
		})
	}
}

// TestBeyondDepth is about values that are nested more deeply than differences are told.
func TestBeyondDepth(t *testing.T) {
	const levels = 2 * diff.MaxDepth
	for name, r := range map[string]cause.Redaction{"Values": {}, "Digests": whole} {
		t.Run(name, func(t *testing.T) {
			_, stored := forms(t, r, deep(levels, "x"))
			for i, form := range stored {
				if c := seen(r, form, deep(levels, "x")); len(c.Diff) > 0 {
					t.Errorf("form %d: nothing has changed, got %v", i, c.Diff)
				}
				innermost := deep(levels, "x")
				at := innermost
				for key := "spec"; at[key] != nil; key = "in" {
					at = at[key].(object)
				}
				at["leaf"] = "y"
				if c := seen(r, form, innermost); len(c.Diff) == 0 {
					t.Errorf("form %d: the change of the innermost value is not seen", i)
				}
			}
		})
	}
}
