package patching

import (
	"maps"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// MergeDiff returns the smallest merge-patch (RFC 7386) that turns the first body into the second, and nil if nothing
// has to change. Values that are equal by diff.Equal are not in the patch.
//
// A merge-patch cannot set a null. So a key with a null counts as absent, except inside of lists; the API server drops
// most nulls, too.
//
// Lists are replaced as a whole. A patch that adds, replaces or removes a list, at any depth, can undo the changes of
// others to that list. In this case touchesList is true, and the patch must be guarded by the resource version.
func MergeDiff(before, after map[string]any) (merge map[string]any, touchesList bool) {
	// The patch is allocated only if there is a difference.
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

// valueDiff returns the merge-patch for one key. An absent value is nil.
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

// withoutNulls returns a merge-patch that creates a subtree. A null in it would remove a key instead.
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

// applyMerge returns the result of the merge-patch for the value. It does not modify either of them.
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

// composeMerges returns one merge-patch with the effect of the first and then of the second on the body. It keeps values that
// the body already has, because the server's body may differ from this one.
func composeMerges(body any, first, second map[string]any) map[string]any {
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
			out[key] = composeMerges(held[key], from, into)
		default:
			// The first one removed the value that the body has here. Without that removal, the mappings would be
			// merged.
			out[key] = replaceMapping(held[key], into)
		}
	}
	return out
}

// replaceMapping returns a merge-patch that replaces the value by the fresh mapping: it removes all other keys.
func replaceMapping(value any, fresh map[string]any) map[string]any {
	held, _ := value.(map[string]any)
	out := make(map[string]any, len(held)+len(fresh))
	for key := range held {
		out[key] = nil
	}
	for key, field := range fresh {
		if into, ok := field.(map[string]any); ok {
			field = replaceMapping(held[key], into)
		}
		out[key] = field
	}
	return out
}
