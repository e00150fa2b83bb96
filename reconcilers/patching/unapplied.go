package patching

import "github.com/kopf-runtime/kopf-runtime/storage/diff"

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
