package patching

import (
	"maps"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Unapplied tells what of a merge-patch did not come true in the server's answer, nil if all did: Old is what was asked
// for, New what there is. Kopf logs these as inconsistencies. The usual reason is that the schema prunes unknown
// fields, mostly of the status. Empty labels, annotations and finalizers count as absent ones.
func Unapplied(merge, answer map[string]any) diff.Diff {
	if len(merge) == 0 {
		return nil
	}
	var left diff.Diff
	for _, item := range diff.ComputeLeft(merge, answer) {
		if !droppedWhenEmpty(item) {
			left = append(left, item)
		}
	}
	return left
}

func droppedWhenEmpty(item diff.Item) bool {
	if len(item.Path) != 2 || item.Path[0] != "metadata" || !isEmpty(item.Old) || !isEmpty(item.New) {
		return false
	}
	switch item.Path[1] {
	case "labels", "annotations", "finalizers":
		return true
	default:
		return false
	}
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	default:
		return false
	}
}

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
