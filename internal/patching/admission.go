package patching

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// pointerEscapes escapes one key of a JSON pointer (RFC 6901).
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// jsonPatchOperations returns the JSON-patch (RFC 6902) that turns the first body into the second, in the order of
// paths, and nil if they are equal. Lists are replaced as a whole, because all users of the operations know the exact
// list to which they apply.
//
// Only the type of the jsonpatch module is used. Its function that compares documents reads numbers as floats, so it
// overlooks changes of large integers and rounds the ones that it copies.
func jsonPatchOperations(before, after map[string]any) []jsonpatch.Operation {
	return appendOperations(nil, "", before, after)
}

// appendOperations appends the operations for the mappings at a JSON pointer.
func appendOperations(ops []jsonpatch.Operation, at string, before, after map[string]any) []jsonpatch.Operation {
	// The operations are sorted, so that equal patches have equal answers.
	for _, key := range unionOfKeys(before, after) {
		held, had := before[key]
		fresh, has := after[key]
		from, wasMapping := held.(map[string]any)
		into, isMapping := fresh.(map[string]any)
		// Two mappings are compared by the recursion below.
		if had && has && !(wasMapping && isMapping) && diff.Equal(held, fresh) {
			continue
		}
		pointer := at + "/" + pointerEscapes.Replace(key)
		switch {
		case !has:
			ops = append(ops, jsonpatch.NewOperation("remove", pointer, nil))
		case !had:
			ops = append(ops, jsonpatch.NewOperation("add", pointer, fresh))
		case wasMapping && isMapping:
			ops = appendOperations(ops, pointer, from, into)
		default:
			ops = append(ops, jsonpatch.NewOperation("replace", pointer, fresh))
		}
	}
	return ops
}

// unionOfKeys returns the sorted keys of both mappings.
func unionOfKeys(a, b map[string]any) []string {
	keys := slices.AppendSeq(make([]string, 0, len(a)+len(b)), maps.Keys(a))
	keys = slices.AppendSeq(keys, maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// AdmissionOps returns the JSON-patch operations of an admission response: the changes of the patch to the reviewed
// body, without guards. It returns nil if there are no changes. Kopf: Patch.as_json_patch.
//
// As always, the merge-patch is applied before the transformations. But it is applied by Kopf's rules for admission,
// which differ from RFC 7386:
//
//   - A null removes the key, and all parents that become empty.
//   - An empty mapping has no effect, at any depth: it neither creates nor clears.
//   - A mapping in place of a scalar, a list or a null is an error that names the path. A failed transformation is an
//     error, too.
func AdmissionOps(body map[string]any, p Patch) ([]jsonpatch.Operation, error) {
	reviewed, _ := diff.DeepCopy(body).(map[string]any)
	if reviewed == nil {
		reviewed = map[string]any{}
	}
	if err := mergeReviewed(reviewed, p.Merge, nil); err != nil {
		return nil, fmt.Errorf("merging the patch into the reviewed body: %w", err)
	}
	after, err := transformInPlace(reviewed, p.Transforms)
	if err != nil {
		return nil, err
	}
	return jsonPatchOperations(body, after), nil
}

// mergeReviewed applies the merge-patch to the held mapping in place.
func mergeReviewed(held, merge map[string]any, path []string) error {
	for key, change := range merge {
		switch change := change.(type) {
		case nil:
			delete(held, key)
		case map[string]any:
			if err := mergeReviewedChild(held, key, change, append(path[:len(path):len(path)], key)); err != nil {
				return err
			}
		default:
			held[key] = diff.DeepCopy(change)
		}
	}
	return nil
}

// mergeReviewedChild applies a nested mapping of the patch to one key. It creates the mapping if it is absent.
func mergeReviewedChild(held map[string]any, key string, change map[string]any, path []string) error {
	if isLeafless(change) {
		return nil
	}
	value, present := held[key]
	child, isMapping := value.(map[string]any)
	switch {
	case present && !isMapping:
		return fmt.Errorf("%s is not a mapping in the body, but is one in the patch", strings.Join(path, "."))
	case !present:
		child = map[string]any{}
	}
	if err := mergeReviewed(child, change, path); err != nil {
		return err
	}
	// The patch has leaves, so a mapping that is empty now was emptied by a removal.
	if len(child) > 0 {
		held[key] = child
	} else {
		delete(held, key)
	}
	return nil
}

// isLeafless reports whether the patch has only mappings, at any depth.
func isLeafless(merge map[string]any) bool {
	for _, change := range merge {
		if child, ok := change.(map[string]any); !ok || !isLeafless(child) {
			return false
		}
	}
	return true
}
