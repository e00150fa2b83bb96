package storage

import (
	"errors"
	"fmt"
	"strings"
)

var errRoot = errors.New("the path is empty: the root cannot be replaced")

// Put sets the value at the path of a merge-patch in place, making the mappings on the way; nil stands for the removal
// of what is there in the object. It is an error if something else than a mapping is in the way, a null included (it
// removes the whole place), or if the path is empty; the patch is not changed then.
func Put(patch map[string]any, path []string, value any) error {
	if len(path) == 0 {
		return fmt.Errorf("extending the patch: %w", errRoot)
	}
	last := len(path) - 1
	for depth, key := range path[:last] {
		child, err := childMapping(patch, key)
		if err != nil {
			return fmt.Errorf("putting %s into the patch: %w", strings.Join(path, "."), err)
		}
		if child == nil {
			patch[key] = nested(path[depth+1:], value)
			return nil
		}
		patch = child
	}
	patch[path[last]] = value
	return nil
}

// nested gives the mappings of a path with the value in the innermost one.
func nested(path []string, value any) any {
	for depth := len(path) - 1; depth >= 0; depth-- {
		value = map[string]any{path[depth]: value}
	}
	return value
}

// Drop takes back what was put at the path of a merge-patch, in place, together with the mappings on the way that
// become empty. If there is no such place, nothing happens: mappings that were empty before stay.
func Drop(patch map[string]any, path []string) {
	if len(path) == 0 {
		return
	}
	if len(path) == 1 {
		delete(patch, path[0])
		return
	}
	child, _ := patch[path[0]].(map[string]any)
	if len(child) == 0 {
		return
	}
	Drop(child, path[1:])
	if len(child) == 0 {
		delete(patch, path[0])
	}
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// Leaves are the places that a merge-patch writes to, with what it puts there, removals included. Their names are JSON
// pointers, such as "/metadata/annotations/example.org~1key". So a caller finds out where a storage keeps something: it
// has the storage write that to an empty patch.
func Leaves(patch map[string]any) map[string]any {
	leaves := map[string]any{}
	collect(leaves, "", patch)
	return leaves
}

func collect(leaves map[string]any, at string, value any) {
	mapping, ok := value.(map[string]any)
	if !ok {
		leaves[at] = value
		return
	}
	for key, inner := range mapping {
		collect(leaves, at+"/"+pointerEscapes.Replace(key), inner)
	}
}
