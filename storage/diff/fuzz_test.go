package diff_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

func FuzzCompute(f *testing.F) {
	f.Add([]byte(""), []byte(""))
	f.Add([]byte("\x08\x02\x00\x08\x01\x01\x03"), []byte("\x08\x02\x00\x08\x01\x02\x03\x01\x04"))
	f.Add([]byte("\x08\x03\x00\x07\x02\x00\x08\x01\x01\x00"), []byte("\x08\x03\x00\x07\x02\x00\x08\x00\x01\x04"))
	f.Add([]byte("\x08\x04\x00\x01\x01\x02\x02\x03\x03\x04"), []byte("\x08\x04\x00\x03\x01\x04\x02\x05\x03\x00"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		if len(first)+len(second) > 200 {
			t.Skip("larger values only make the run slower")
		}
		before, after := valueFromSeed(first), valueFromSeed(second)
		beforeCopy, afterCopy := valueFromSeed(first), valueFromSeed(second)

		whole := diff.Compute(before, after)
		requireNoSelfDiff(t, before)
		requireApplicable(t, whole, before, after)
		requireConsistentScopes(t, whole, before, after)
		requireConsistentReduction(t, whole, before, after)

		requireSame(t, "a second run", whole, diff.Compute(beforeCopy, afterCopy))
		requireSame(t, "the old value after all checks", beforeCopy, before)
		requireSame(t, "the new value after all checks", afterCopy, after)
	})
}

func requireNoSelfDiff(t *testing.T, value any) {
	t.Helper()
	if got := diff.Compute(value, value); got != nil {
		t.Fatalf("a value differs from itself: %v", got)
	}
	if !diff.Equal(value, value) {
		t.Fatalf("a value does not equal itself: %v", value)
	}
}

func requireApplicable(t *testing.T, whole diff.Diff, before, after any) {
	t.Helper()
	result := before
	for _, item := range whole {
		value, _ := diff.ResolvePath(result, item.Path)
		requireSame(t, "the old value of an item", item.Old, value)
		result = replaceAt(result, item.Path, item.New)
	}
	requireSame(t, "the old value with the diff applied", withoutNulls(after), withoutNulls(result))
	if same := cmp.Equal(withoutNulls(before), withoutNulls(after)); same != (whole == nil) {
		t.Fatalf("values equal except for nulls: %v, but the diff is %v", same, whole)
	}
	if diff.Equal(before, after) && whole != nil {
		t.Fatalf("equal values have a diff: %v", whole)
	}
}

func requireConsistentScopes(t *testing.T, whole diff.Diff, before, after any) {
	t.Helper()
	left, right := diff.ComputeLeft(before, after), diff.ComputeRight(before, after)
	for _, item := range slices.Concat(left, right) {
		if !containsItem(whole, item) {
			t.Fatalf("an item of a scope is missing in the full diff: %v", item)
		}
	}
	for _, item := range whole {
		if !containsItem(left, item) && !containsItem(right, item) {
			t.Fatalf("an item of the full diff is in neither scope: %v", item)
		}
	}
	requireSame(t, "the right scope as the mirror of the left one", reverseDiff(diff.ComputeLeft(after, before)), right)
}

func containsItem(d diff.Diff, item diff.Item) bool {
	return slices.ContainsFunc(d, func(other diff.Item) bool { return cmp.Equal(item, other) })
}

func requireConsistentReduction(t *testing.T, whole diff.Diff, before, after any) {
	t.Helper()
	requireSame(t, "the reduction to the root", whole, whole.Reduce(nil, before, after))
	for _, field := range []diff.Path{{"a"}, {"b"}, {"a", "b"}, {"b", "a"}, {"a", "a", "a"}} {
		beforeValue, _ := diff.ResolvePath(before, field)
		afterValue, _ := diff.ResolvePath(after, field)
		want := diff.Compute(beforeValue, afterValue)
		requireSame(t, "the reduction to "+field.String(), want, whole.Reduce(field, before, after))
	}
}

func requireSame(t *testing.T, what string, want, got any) {
	t.Helper()
	if delta := cmp.Diff(want, got); delta != "" {
		t.Fatalf("%s: -want, +got:\n%s", what, delta)
	}
}

// valueFromSeed makes a JSON value from any bytes, so that the fuzzer does not waste time on syntax. With few keys and
// scalars, two values are likely to have equal parts. Numbers are integers only: cmp does not equate a float with an
// integer.
func valueFromSeed(seed []byte) any {
	take := func() byte {
		if len(seed) == 0 {
			return 0
		}
		taken := seed[0]
		seed = seed[1:]
		return taken
	}
	var value func(depth int) any
	value = func(depth int) any {
		scalars := []any{nil, false, true, int64(0), int64(1), "", "1"}
		choice := int(take()) % (len(scalars) + 3)
		switch {
		case choice < len(scalars) || depth > 5:
			return scalars[choice%len(scalars)]
		case choice == len(scalars):
			grown := list{}
			for range take() % 4 {
				grown = append(grown, value(depth+1))
			}
			return grown
		default:
			grown := object{}
			for range take() % 6 {
				grown[string('a'+rune(take()%4))] = value(depth + 1)
			}
			return grown
		}
	}
	return value(0)
}

// replaceAt returns the value with the part at the path replaced, or removed if the replacement is nil.
func replaceAt(value any, path diff.Path, replacement any) any {
	if len(path) == 0 {
		return replacement
	}
	mapping := maps.Clone(value.(object))
	if len(path) == 1 && replacement == nil {
		delete(mapping, path[0])
	} else {
		mapping[path[0]] = replaceAt(mapping[path[0]], path[1:], replacement)
	}
	return mapping
}

// withoutNulls returns the value without keys of mappings whose value is null. Lists do not change.
func withoutNulls(value any) any {
	mapping, ok := value.(object)
	if !ok {
		return value
	}
	result := object{}
	for key, inner := range mapping {
		if inner != nil {
			result[key] = withoutNulls(inner)
		}
	}
	return result
}

func reverseDiff(d diff.Diff) diff.Diff {
	opposite := map[diff.Operation]diff.Operation{
		diff.Add: diff.Remove, diff.Remove: diff.Add, diff.Change: diff.Change,
	}
	result := slices.Clone(d)
	for i, item := range result {
		result[i].Op, result[i].Old, result[i].New = opposite[item.Op], item.New, item.Old
	}
	return result
}
