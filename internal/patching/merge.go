package patching

import (
	"maps"

	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// MergeDiff returns the smallest merge-patch (RFC 7386) that turns the first body into the second, and nil if nothing
// has to change. Values that are equal by diff.Equal are not in the patch.
//
// A merge-patch cannot set a null. So a key with a null counts as absent, except inside of lists; the API server drops
// most nulls, too.
//
// Lists are replaced as a whole.
func MergeDiff(before, after map[string]any) (merge map[string]any) {
	// The patch is allocated only if there is a difference.
	set := func(key string, value any) {
		if merge == nil {
			merge = map[string]any{}
		}
		merge[key] = value
	}
	for key, fresh := range after {
		if value, differs := valueDiff(before[key], fresh); differs {
			set(key, value)
		}
	}
	for key, held := range before {
		if _, kept := after[key]; !kept && held != nil {
			set(key, nil)
		}
	}
	return merge
}

// valueDiff returns the merge-patch for one key. An absent value is nil.
func valueDiff(held, fresh any) (value any, differs bool) {
	into, isMapping := fresh.(map[string]any)
	from, wasMapping := held.(map[string]any)
	switch {
	case isMapping && wasMapping:
		merge := MergeDiff(from, into)
		return merge, merge != nil
	case isMapping:
		// A null in the patch would remove a key.
		return storage.WithoutNulls(into), true
	case fresh == nil:
		return nil, held != nil
	default:
		return fresh, !diff.Equal(held, fresh)
	}
}

// composeMerges returns one merge-patch with the effect of the first and then of the second on the body. It keeps
// values that the body already has, because the server's body may differ from this one.
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
