package patching

import (
	"maps"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// MergeDiff returns the smallest merge-patch (RFC 7386) that makes the first body the second, nil if there is nothing
// to do. Values that diff.Equal takes for the same are not in it.
//
// A merge-patch cannot say "null": a key with a null is taken for an absent one, except inside lists; the API server
// drops most nulls, too. Lists are replaced as a whole, so a patch that adds, replaces or removes one, at any depth,
// would undo what others did to that list: touchesList asks for a guard by the resource version then.
func MergeDiff(before, after map[string]any) (merge map[string]any, touchesList bool) {
	set := func(key string, value any, lists bool) {
		if merge == nil {
			merge = map[string]any{}
		}
		merge[key] = value
		touchesList = touchesList || lists
	}
	for key, fresh := range after {
		if value, lists, differs := valueDiff(before[key], fresh); differs {
			set(key, value, lists)
		}
	}
	for key, held := range before {
		if _, kept := after[key]; !kept && held != nil {
			set(key, nil, hasList(held))
		}
	}
	return merge, touchesList
}

// valueDiff is MergeDiff for one key, where absence is nil.
func valueDiff(held, fresh any) (value any, lists, differs bool) {
	into, isMapping := fresh.(map[string]any)
	from, wasMapping := held.(map[string]any)
	switch {
	case isMapping && wasMapping:
		merge, lists := MergeDiff(from, into)
		return merge, lists, merge != nil
	case isMapping:
		return withoutNulls(into), hasList(held) || hasList(into), true
	case fresh == nil:
		return nil, hasList(held), held != nil
	case diff.Equal(held, fresh):
		return nil, false, false
	default:
		return fresh, hasList(held) || hasList(fresh), true
	}
}

// withoutNulls makes a merge-patch of a new subtree: a null in it would ask for a removal.
func withoutNulls(subtree map[string]any) map[string]any {
	out := make(map[string]any, len(subtree))
	for key, value := range subtree {
		switch value := value.(type) {
		case nil:
		case map[string]any:
			out[key] = withoutNulls(value)
		default:
			out[key] = value
		}
	}
	return out
}

// applyMerge returns what the value becomes by the merge-patch; both stay as they are.
func applyMerge(value any, merge map[string]any) map[string]any {
	held, _ := value.(map[string]any)
	out := make(map[string]any, len(held)+len(merge))
	maps.Copy(out, held)
	for key, change := range merge {
		switch change := change.(type) {
		case nil:
			delete(out, key)
		case map[string]any:
			out[key] = applyMerge(out[key], change)
		default:
			out[key] = change
		}
	}
	return out
}

// compose returns the one merge-patch that does to the body what the first one does, and then the second. Values that
// the body already has stay in it: the server's body may differ from ours.
func compose(body any, first, second map[string]any) map[string]any {
	held, _ := body.(map[string]any)
	out := make(map[string]any, len(first)+len(second))
	maps.Copy(out, first)
	for key, change := range second {
		into, isMapping := change.(map[string]any)
		earlier, present := out[key]
		from, wasMapping := earlier.(map[string]any)
		switch {
		case !isMapping || !present:
			out[key] = change
		case wasMapping:
			out[key] = compose(held[key], from, into)
		default:
			// The first removed what the body has here; without it in between, the mappings would be merged.
			out[key] = replacement(held[key], into)
		}
	}
	return out
}

// replacement gives a merge-patch that replaces the value by the fresh mapping.
func replacement(value any, fresh map[string]any) map[string]any {
	held, _ := value.(map[string]any)
	out := make(map[string]any, len(held)+len(fresh))
	for key := range held {
		out[key] = nil
	}
	for key, field := range fresh {
		if into, ok := field.(map[string]any); ok {
			field = replacement(held[key], into)
		}
		out[key] = field
	}
	return out
}
