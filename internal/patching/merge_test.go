package patching_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	evanphx "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// TestMergeDiff shows the merge patch between two bodies, and whether it touches a list.
func TestMergeDiff(t *testing.T) {
	type m = map[string]any
	cases := map[string]struct {
		reason        string
		before, after m
		want          m
		lists         bool
	}{
		"Equal": {
			reason: "Equal bodies need no patch, which is nil.", before: m{"a": m{"b": []any{int64(1)}}},
			after: m{"a": m{"b": []any{1.0}}},
		},
		"NullIsAbsence": {reason: "A null is equal to a missing key, as merge patches cannot distinguish them.",
			before: m{"a": nil}, after: m{"b": nil}},
		"Booleans": {
			reason: "A boolean is not equal to one.",
			before: m{"a": true}, after: m{"a": int64(1)}, want: m{"a": int64(1)},
		},
		"LargeIntegers": {
			reason: "Integers beyond the precision of floats are distinguished and kept.",
			before: m{"a": int64(9007199254740992)}, after: m{"a": int64(9007199254740993)},
			want: m{"a": int64(9007199254740993)},
		},
		"Removal": {
			reason: "A removed key is set to null.", before: m{"a": m{"b": "x", "c": "y"}},
			after: m{"a": m{"c": "y"}}, want: m{"a": m{"b": nil}},
		},
		"NulledValue": {
			reason: "A null over a value removes it.", before: m{"a": "x"}, after: m{"a": nil}, want: m{"a": nil},
		},
		"EmptiedMapping": {
			reason: "Each key of an emptied mapping is set to null, as an empty mapping would have no effect.",
			before: m{"a": m{"b": "x"}}, after: m{"a": m{}}, want: m{"a": m{"b": nil}},
		},
		"EmptyMapping": {
			reason: "A new empty mapping is created.", before: m{}, after: m{"a": m{}}, want: m{"a": m{}},
		},
		"NullsInSubtree": {
			reason: "Nulls inside a new mapping are omitted, as they would mean removals.", before: m{},
			after: m{"a": m{"b": nil, "c": m{"d": nil}}}, want: m{"a": m{"c": m{}}},
		},
		"MappingOver": {
			reason: "A mapping replaces a scalar unchanged.", before: m{"a": "x"}, after: m{"a": m{"b": "y"}},
			want: m{"a": m{"b": "y"}},
		},
		"ScalarOver": {
			reason: "A scalar replaces a mapping.", before: m{"a": m{"b": "y"}}, after: m{"a": "x"}, want: m{"a": "x"},
		},
		"ListChanged": {
			reason: "A changed list is replaced as a whole, so it touches a list.", before: m{"a": m{"l": []any{"x"}}},
			after: m{"a": m{"l": []any{"x", nil}}}, want: m{"a": m{"l": []any{"x", nil}}}, lists: true,
		},
		"ListAdded": {
			reason: "An added list touches a list, as another client may have added it.",
			before: m{}, after: m{"l": []any{}},
			want: m{"l": []any{}}, lists: true,
		},
		"ListRemoved": {
			reason: "A removed list touches a list, as another client may have extended it.",
			before: m{"l": []any{"x"}}, after: m{}, want: m{"l": nil},
			lists: true,
		},
		"ListInRemoved": {
			reason: "A removed mapping that contains a list touches a list.",
			before: m{"a": m{"b": m{"l": []any{"x"}}}}, after: m{"a": m{}},
			want: m{"a": m{"b": nil}}, lists: true,
		},
		"ListOverMapping": {
			reason: "A mapping replaced by a list touches a list.", before: m{"a": m{}}, after: m{"a": []any{}},
			want: m{"a": []any{}}, lists: true,
		},
		"MappingOverList": {
			reason: "A list replaced by a mapping touches a list.",
			before: m{"a": []any{"x"}}, after: m{"a": m{}}, want: m{"a": m{}},
			lists: true,
		},
		"ListUntouched": {
			reason: "Lists beside the changes do not count.", before: m{"a": m{"l": []any{"x"}, "b": "y"}},
			after: m{"a": m{"l": []any{"x"}}}, want: m{"a": m{"b": nil}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := patching.MergeDiff(tc.before, tc.after)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if lists := patching.TouchesList(tc.before, got); lists != tc.lists {
				t.Errorf("%s\nwant touchesList %v, got %v", tc.reason, tc.lists, lists)
			}
		})
	}
}

// FuzzMergeDiff checks that applying the merge patch to the former body leads to the latter one.
func FuzzMergeDiff(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		before, after := randomMapping(r, 3), randomMapping(r, 3)
		if r.IntN(3) > 0 {
			after = mutated(r, before)
		}
		texts := [2]string{string(encode(before)), string(encode(after))}
		merge := patching.MergeDiff(before, after)
		if texts != [2]string{string(encode(before)), string(encode(after))} {
			t.Fatal("an input was modified")
		}
		out, err := evanphx.MergePatch(encode(before), encode(orEmpty(merge)))
		if err != nil {
			t.Fatalf("the server would refuse the patch: %v", err)
		}
		if got := pruned(decode(out)); !diff.Equal(pruned(after), got) {
			t.Errorf("before %s\npatch %s\n-want, +got:\n%s", texts[0], encode(merge), cmp.Diff(pruned(after), got))
		}
		if again := patching.MergeDiff(after, after); again != nil {
			t.Errorf("a body differs from itself by %v", again)
		}
	})
}

// TestMergeDiffOfEqualBodiesIsFree shows that comparing equal bodies allocates nothing.
func TestMergeDiffOfEqualBodiesIsFree(t *testing.T) {
	body := randomMapping(rand.New(rand.NewPCG(5, 5)), 4)
	same := decode(encode(body)).(map[string]any)
	if n := testing.AllocsPerRun(100, func() { patching.MergeDiff(body, same) }); n > 0 {
		t.Errorf("want no allocations, got %v", n)
	}
}

func orEmpty(mapping map[string]any) map[string]any {
	if mapping == nil {
		return map[string]any{}
	}
	return mapping
}

// pruned returns the value without keys that are null, at any depth: neither merge patches nor servers keep them.
func pruned(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, field := range value {
			if field != nil {
				out[key] = pruned(field)
			}
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, item := range value {
			out[i] = pruned(item)
		}
		return out
	default:
		return value
	}
}

func randomMapping(r *rand.Rand, depth int) map[string]any {
	out := map[string]any{}
	for range r.IntN(4) {
		out[string("abc/~"[r.IntN(5)])] = randomValue(r, depth)
	}
	return out
}

func randomValue(r *rand.Rand, depth int) any {
	scalars := []any{nil, true, false, int64(1), int64(9007199254740993), 1.5, "", "x"}
	switch n := r.IntN(10); {
	case depth > 0 && n < 4:
		return randomMapping(r, depth-1)
	case depth > 0 && n < 6:
		list := make([]any, r.IntN(3))
		for i := range list {
			list[i] = randomValue(r, depth-1)
		}
		return list
	default:
		return scalars[r.IntN(len(scalars))]
	}
}

// mutated returns a copy with few changes, as most errors hide in small differences.
func mutated(r *rand.Rand, value map[string]any) map[string]any {
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(value)) {
		field := value[key]
		child, isMapping := field.(map[string]any)
		switch n := r.IntN(6); {
		case n == 0:
		case n == 1:
			out[key] = randomValue(r, 2)
		case isMapping:
			out[key] = mutated(r, child)
		default:
			out[key] = field
		}
	}
	if r.IntN(3) == 0 {
		out["new"] = randomValue(r, 2)
	}
	return out
}
