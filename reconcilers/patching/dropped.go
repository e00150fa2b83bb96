package patching

import (
	"maps"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// dropped are the fields of a merge-patch that the answer to it does not have: a CRD's schema drops what it does not
// know, without a word. The metadata is the server's own, and is left out.
func dropped(payload, answer map[string]any) []diff.Path {
	var lost []diff.Path
	for _, key := range slices.Sorted(maps.Keys(payload)) {
		if key != "metadata" {
			lost = missing(lost, diff.Path{key}, payload[key], answer)
		}
	}
	return lost
}

// missing adds what is not at its place; of a mapping that is not there at all, the mapping. The path is lent: whatever
// is nested how deeply ever, costs no more than it has keys.
func missing(lost []diff.Path, at diff.Path, wanted any, within map[string]any) []diff.Path {
	held, present := within[at[len(at)-1]]
	inner, mapping := wanted.(map[string]any)
	switch {
	case wanted == nil || !present && mapping && empty(inner):
		return lost
	case !present:
		return append(lost, slices.Clone(at))
	case !mapping:
		return lost
	}
	into, _ := held.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(inner)) {
		lost = missing(lost, append(at, key), inner[key], into)
	}
	return lost
}

// empty tells whether a merge-patch of a mapping leaves nothing of its own.
func empty(payload map[string]any) bool {
	for _, value := range payload {
		inner, mapping := value.(map[string]any)
		if value != nil && !(mapping && empty(inner)) {
			return false
		}
	}
	return true
}
