package storage

import (
	"fmt"
	"maps"
	"strings"
)

// With returns the tree with the value at the path. The tree is not modified: the mappings on the way are copied, and
// all else is shared. Whatever is in the way without being a mapping is replaced by one. With an empty path, the tree
// is returned as it is.
func With(tree map[string]any, path []string, value any) map[string]any {
	if len(path) == 0 {
		return tree
	}
	changed := maps.Clone(tree)
	if changed == nil {
		changed = make(map[string]any, 1)
	}
	if len(path) > 1 {
		child, _ := tree[path[0]].(map[string]any)
		value = With(child, path[1:], value)
	}
	changed[path[0]] = value
	return changed
}

// Without returns the tree without what is at the path, and without the mappings on the way that are empty then, be it
// that they were empty before. The tree is not modified: the mappings on the way are copied, and all else is shared; if
// there is nothing to remove, the tree itself is returned, and nothing is allocated.
//
// It is an error if something else than a mapping is in the way, or if the path is empty.
func Without(tree map[string]any, path []string) (map[string]any, error) {
	if len(path) == 0 {
		return nil, fmt.Errorf("removing a field: %w", errRoot)
	}
	remaining, _, err := without(tree, path)
	if err != nil {
		return nil, fmt.Errorf("removing %s: %w", strings.Join(path, "."), err)
	}
	return remaining, nil
}

// without tells in addition whether anything was removed: mappings cannot be compared for being the same.
func without(tree map[string]any, path []string) (map[string]any, bool, error) {
	key := path[0]
	if _, ok := tree[key]; !ok {
		return tree, false, nil
	}
	if len(path) == 1 {
		return withoutKey(tree, key), true, nil
	}
	child, err := childMapping(tree, key)
	if err != nil {
		return nil, false, err
	}
	remaining, changed, err := without(child, path[1:])
	if err != nil {
		return nil, false, err
	}
	if len(remaining) == 0 {
		return withoutKey(tree, key), true, nil
	}
	if !changed {
		return tree, false, nil
	}
	copied := maps.Clone(tree)
	copied[key] = remaining
	return copied, true, nil
}

// Trim returns an essence without the places that mean nothing once they are empty: metadata.annotations and
// metadata.labels if empty or null, then metadata if empty, and status if it is anything that counts as nothing (null,
// false, 0, "", {} or []). Other places stay, however empty. The essence is not modified; if there is nothing to trim,
// it is returned itself, and nothing is allocated.
func Trim(essence map[string]any) map[string]any {
	if metadata, ok := essence["metadata"].(map[string]any); ok {
		remaining := withoutFalsy(withoutFalsy(metadata, "annotations"), "labels")
		if len(remaining) < len(metadata) {
			essence = With(essence, []string{"metadata"}, remaining)
		}
	}
	return withoutFalsy(withoutFalsy(essence, "metadata"), "status")
}

// withoutFalsy gives the tree without the key, if its value counts as nothing.
func withoutFalsy(tree map[string]any, key string) map[string]any {
	if value, ok := tree[key]; ok && isFalsy(value) {
		return withoutKey(tree, key)
	}
	return tree
}

// withoutKey gives the tree without the key.
func withoutKey(tree map[string]any, key string) map[string]any {
	remaining := make(map[string]any, len(tree))
	for name, value := range tree {
		if name != key {
			remaining[name] = value
		}
	}
	return remaining
}

// isFalsy tells whether Python takes a value for false.
func isFalsy(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case bool:
		return !value
	case int64:
		return value == 0
	case float64:
		return value == 0
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	}
	return false
}
