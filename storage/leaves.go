package storage

import "strings"

var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// Leaves are the places that a merge-patch writes to, with what it puts there, removals included. They are named by
// JSON pointers, such as "/metadata/annotations/example.org~1key". So a storage can be asked where it keeps something:
// let it store that into an empty patch.
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
		collect(leaves, at+"/"+pointer.Replace(key), inner)
	}
}
