package storage

import (
	"errors"
	"fmt"
	"strings"
)

// errRoot is the error of an empty path.
var errRoot = errors.New("the path is empty: the root cannot be replaced")

// PutValue sets the value at the path of a merge-patch in place, and creates the missing mappings along the path. Nil
// removes the value from the object when the patch is applied.
//
// # Errors
//
// It returns an error if the path is empty, or if it leads through a value that is not a mapping. This includes a null,
// which removes the whole place. The patch does not change then.
func PutValue(patch map[string]any, path []string, value any) error {
	if len(path) == 0 {
		return fmt.Errorf("extending the patch: %w", errRoot)
	}
	last := len(path) - 1
	for depth, key := range path[:last] {
		child, err := childMapping(patch, key)
		if err != nil {
			return fmt.Errorf("putting %s into the patch: %w", strings.Join(path, "."), err)
		}
		// Nothing was changed before this point, so the errors above leave the patch as it was.
		if child == nil {
			patch[key] = nestedValue(path[depth+1:], value)
			return nil
		}
		patch = child
	}
	patch[path[last]] = value
	return nil
}

// nestedValue returns the mappings of a path with the value in the innermost one.
func nestedValue(path []string, value any) any {
	for depth := len(path) - 1; depth >= 0; depth-- {
		value = map[string]any{path[depth]: value}
	}
	return value
}

// DropValue undoes [PutValue]: it removes the value at the path from a merge-patch in place, and then the mappings along the path
// that became empty. If there is no value at the path, the patch does not change, and mappings that were empty before
// remain.
func DropValue(patch map[string]any, path []string) {
	if len(path) == 0 {
		return
	}
	if len(path) == 1 {
		delete(patch, path[0])
		return
	}
	child, _ := patch[path[0]].(map[string]any)
	// A child that is empty already was not emptied by this removal, so it stays.
	if len(child) == 0 {
		return
	}
	DropValue(child, path[1:])
	if len(child) == 0 {
		delete(patch, path[0])
	}
}

// pointerEscapes escapes one key of a JSON pointer (RFC 6901).
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// PatchLeaves returns the places that a merge-patch writes to, with their values, including removals. The places are JSON
// pointers, such as "/metadata/annotations/example.org~1key". To find out where a storage keeps a value, let it store
// the value in an empty patch.
func PatchLeaves(patch map[string]any) map[string]any {
	leaves := map[string]any{}
	collectLeaves(leaves, "", patch)
	return leaves
}

// collectLeaves adds the places of a value to the leaves. An empty mapping has no places, because it does not write anything.
func collectLeaves(leaves map[string]any, at string, value any) {
	mapping, ok := value.(map[string]any)
	if !ok {
		leaves[at] = value
		return
	}
	for key, inner := range mapping {
		collectLeaves(leaves, at+"/"+pointerEscapes.Replace(key), inner)
	}
}
