package patching

import (
	"fmt"
	"strings"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// AdmissionOps returns the JSON-patch operations of an admission response: what the patch makes of the reviewed body,
// without guards; nil if it makes no difference. Kopf's Patch.as_json_patch.
//
// The merge-patch goes first, then the transformations, as always. But it is merged as Kopf merges it for admission,
// which is not RFC 7386:
//
//   - a null removes the key, and all parents that are empty then;
//   - an empty mapping does nothing, at any depth: it neither creates nor clears;
//   - a mapping over a scalar, a list or a null is an error that names the path, as is a failed transformation.
func AdmissionOps(body map[string]any, p Patch) ([]jsonpatch.Operation, error) {
	reviewed, _ := diff.Copy(body).(map[string]any)
	if reviewed == nil {
		reviewed = map[string]any{}
	}
	if _, err := mergeReviewed(reviewed, p.Merge, nil); err != nil {
		return nil, fmt.Errorf("merging the patch into the reviewed body: %w", err)
	}
	after, err := applyTransforms(reviewed, p.Transforms)
	if err != nil {
		return nil, err
	}
	return operations(body, after), nil
}

// mergeReviewed merges into the held mapping itself. It tells whether anything was asked to be removed at any depth,
// for the parents to be dropped if they are empty.
func mergeReviewed(held, merge map[string]any, path []string) (pruning bool, err error) {
	for key, change := range merge {
		switch change := change.(type) {
		case nil:
			delete(held, key)
			pruning = true
		case map[string]any:
			pruned, err := descend(held, key, change, append(path[:len(path):len(path)], key))
			if err != nil {
				return false, err
			}
			pruning = pruning || pruned
		default:
			held[key] = diff.Copy(change)
		}
	}
	return pruning, nil
}

func descend(held map[string]any, key string, change map[string]any, path []string) (pruning bool, err error) {
	if leafless(change) {
		return false, nil
	}
	value, present := held[key]
	child, isMapping := value.(map[string]any)
	switch {
	case present && !isMapping:
		return false, fmt.Errorf("%s is not a mapping in the body, but is one in the patch", strings.Join(path, "."))
	case !present:
		child = map[string]any{}
	}
	if pruning, err = mergeReviewed(child, change, path); err != nil {
		return false, err
	}
	if len(child) > 0 {
		held[key] = child
	} else if pruning {
		delete(held, key)
	}
	return pruning, nil
}

// leafless tells whether there are nothing but mappings in the patch, down to its ends.
func leafless(merge map[string]any) bool {
	for _, change := range merge {
		if child, ok := change.(map[string]any); !ok || !leafless(child) {
			return false
		}
	}
	return true
}
