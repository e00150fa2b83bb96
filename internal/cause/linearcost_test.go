package cause_test

import (
	"fmt"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/test/growth"
)

// wideEssence returns an essence with one mapping of many values.
func wideEssence(size int, value string) diffbase.Essence {
	many := make(object, size)
	for i := range size {
		many[fmt.Sprint("field", i)] = value
	}
	return diffbase.Essence{"spec": many}
}

// deepEssence returns an essence with a value at each of many levels.
func deepEssence(levels int, value any) diffbase.Essence {
	var inner any = object{"leaf": value}
	for range levels {
		inner = object{"leaf": value, "in": inner}
	}
	return diffbase.Essence{"spec": inner}
}

// essenceSealer returns a list of paths of digests, which any client can write to an object.
func essenceSealer(size int, path func(i int) []any) []any {
	list := make([]any, size)
	for i := range list {
		list[i] = path(i)
	}
	return list
}

// TestLinear shows that the cost grows linearly with the data that tenants can write: the object and its stored
// configuration.
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
		"Digests": {"the cost is not the number of fields times the number of digests", 3000,
			func(size int) (cause.Redaction, diffbase.Essence, diffbase.Essence) {
				stored := wideEssence(size, "forged")
				stored["$digests"] = essenceSealer(size, one)
				return cause.Redaction{}, stored, wideEssence(size, "x")
			}},
		"UselessDigests": {"paths to absent fields do not multiply the cost", 3000,
			func(size int) (cause.Redaction, diffbase.Essence, diffbase.Essence) {
				stored := wideEssence(size, "x")
				stored["$digests"] = essenceSealer(size,
					func(i int) []any { return []any{"spec", fmt.Sprint("other", i)} })
				return cause.Redaction{}, stored, wideEssence(size, "y")
			}},
		"LongPaths": {"the length of one path does not multiply the cost", 20_000,
			func(size int) (cause.Redaction, diffbase.Essence, diffbase.Essence) {
				path := make([]any, size)
				for i := range path {
					path[i] = "in"
				}
				stored := deepEssence(500, "x")
				stored["$digests"] = []any{path}
				return cause.Redaction{}, stored, deepEssence(500, "y")
			}},
		"DeepDigests": {"deeply nested forged digests have linear cost", 1000,
			func(size int) (cause.Redaction, diffbase.Essence, diffbase.Essence) {
				stored := deepEssence(size, "forged")
				stored["$digests"] = []any{[]any{"spec"}}
				return cause.Redaction{}, stored, deepEssence(size, "y")
			}},
		"DeepSecrets": {"deeply nested secrets have linear cost", 1000,
			func(size int) (cause.Redaction, diffbase.Essence, diffbase.Essence) {
				return cause.Redaction{Paths: []diff.Path{{"spec"}}, Limit: 1000}, deepEssence(size, "x"),
					deepEssence(size, "y")
			}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			growth.Linear(t, tc.size, func(size int) func() {
				redaction, stored, present := tc.work(size)
				return func() {
					old, veiled := redaction.RestoreEssence(body, stored, present)
					cause.Detect(cause.Observation{Body: body, Old: old, New: present, VeiledPaths: veiled})
					cause.WithoutHidden(old)
					for _, essence := range []diffbase.Essence{old, present} {
						for _, err := range redaction.StoredForms(body, essence) {
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

// TestBeyondDepth shows that changes in values nested beyond the maximum depth of differences are detected.
func TestBeyondDepth(t *testing.T) {
	const levels = 2 * diff.MaxDepth
	for name, r := range map[string]cause.Redaction{"Values": {}, "Digests": redactAll} {
		t.Run(name, func(t *testing.T) {
			_, stored := forms(t, r, deepEssence(levels, "x"))
			for i, form := range stored {
				if c := detect(r, form, deepEssence(levels, "x")); len(c.Diff) > 0 {
					t.Errorf("form %d: want no difference, got %v", i, c.Diff)
				}
				innermost := deepEssence(levels, "x")
				at := innermost
				for key := "spec"; at[key] != nil; key = "in" {
					at = at[key].(object)
				}
				at["leaf"] = "y"
				if c := detect(r, form, innermost); len(c.Diff) == 0 {
					t.Errorf("form %d: the change of the innermost value must be detected", i)
				}
			}
		})
	}
}
