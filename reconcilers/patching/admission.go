package patching

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// operations returns the JSON-patch (RFC 6902) that makes the first body the second, nil if they are equal; in order
// of paths. Lists are replaced as a whole: every user of these operations knows the exact list they are applied to.
//
// The differ of the jsonpatch module reads numbers as floats, so it overlooks changes of large integers and rounds
// those it copies. Only its type is used here.
func operations(before, after map[string]any) []jsonpatch.Operation {
	return appendOperations(nil, "", before, after)
}

func appendOperations(ops []jsonpatch.Operation, at string, before, after map[string]any) []jsonpatch.Operation {
	for _, key := range unionOfKeys(before, after) {
		held, had := before[key]
		fresh, has := after[key]
		from, wasMapping := held.(map[string]any)
		into, isMapping := fresh.(map[string]any)
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

func unionOfKeys(a, b map[string]any) []string {
	keys := slices.AppendSeq(make([]string, 0, len(a)+len(b)), maps.Keys(a))
	keys = slices.AppendSeq(keys, maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

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
	if err := mergeReviewed(reviewed, p.Merge, nil); err != nil {
		return nil, fmt.Errorf("merging the patch into the reviewed body: %w", err)
	}
	after, err := transformInPlace(reviewed, p.Transforms)
	if err != nil {
		return nil, err
	}
	return operations(body, after), nil
}

// mergeReviewed merges into the held mapping itself.
func mergeReviewed(held, merge map[string]any, path []string) error {
	for key, change := range merge {
		switch change := change.(type) {
		case nil:
			delete(held, key)
		case map[string]any:
			if err := descend(held, key, change, append(path[:len(path):len(path)], key)); err != nil {
				return err
			}
		default:
			held[key] = diff.Copy(change)
		}
	}
	return nil
}

func descend(held map[string]any, key string, change map[string]any, path []string) error {
	if leafless(change) {
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
	// Whatever leaves it empty has removed something, as there are leaves.
	if len(child) > 0 {
		held[key] = child
	} else {
		delete(held, key)
	}
	return nil
}

// leafless tells whether the patch has nothing but mappings, at any depth.
func leafless(merge map[string]any) bool {
	for _, change := range merge {
		if child, ok := change.(map[string]any); !ok || !leafless(child) {
			return false
		}
	}
	return true
}
