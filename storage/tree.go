package storage

import (
	"fmt"
	"maps"
	"strings"
)

// WithValue returns the tree with the value at the path. It does not modify the tree: it copies the mappings along the
// path, and shares the rest. A value along the path that is not a mapping is replaced by one. With an empty path, it
// returns the tree unchanged.
func WithValue(tree map[string]any, path []string, value any) map[string]any {
	if len(path) == 0 {
		return tree
	}
	changed := maps.Clone(tree)
	if changed == nil {
		changed = make(map[string]any, 1)
	}
	if len(path) > 1 {
		child, _ := tree[path[0]].(map[string]any)
		value = WithValue(child, path[1:], value)
	}
	changed[path[0]] = value
	return changed
}

// WithoutValue returns the tree without the value at the path, and without the mappings along the path that are empty
// after that, including those that were empty before. It does not modify the tree: it copies the mappings along the
// path, and shares the rest. If there is nothing to remove, it returns the tree itself and does not allocate.
//
// # Errors
//
// It returns an error if the path is empty, or if it leads through a value that is not a mapping.
func WithoutValue(tree map[string]any, path []string) (map[string]any, error) {
	if len(path) == 0 {
		return nil, fmt.Errorf("removing a field: %w", errRoot)
	}
	remaining, _, err := removePath(tree, path)
	if err != nil {
		return nil, fmt.Errorf("removing %s: %w", strings.Join(path, "."), err)
	}
	return remaining, nil
}

// removePath also reports whether it removed anything, because Go cannot compare two maps for identity.
func removePath(tree map[string]any, path []string) (map[string]any, bool, error) {
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
	remaining, changed, err := removePath(child, path[1:])
	if err != nil {
		return nil, false, err
	}
	// An empty child is removed even if it did not change, as Kopf does.
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

// TrimEssence returns an essence without the system places that do not mean anything when they are empty:
// metadata.annotations and metadata.labels if empty or null, then metadata if empty, and status if it is false in
// Python (null, false, 0, "", {} or []). Other places remain, even if empty. It does not modify the essence. If there
// is nothing to trim, it returns the essence itself and does not allocate.
func TrimEssence(essence map[string]any) map[string]any {
	if metadata, ok := essence["metadata"].(map[string]any); ok {
		// The annotations and labels go first, as the metadata can be empty only after that.
		remaining := withoutFalsy(withoutFalsy(metadata, "annotations"), "labels")
		if len(remaining) < len(metadata) {
			essence = WithValue(essence, []string{"metadata"}, remaining)
		}
	}
	return withoutFalsy(withoutFalsy(essence, "metadata"), "status")
}

// withoutFalsy returns the tree without the key if its value is false in Python. Otherwise, it returns the tree itself.
func withoutFalsy(tree map[string]any, key string) map[string]any {
	if value, ok := tree[key]; ok && isFalsy(value) {
		return withoutKey(tree, key)
	}
	return tree
}

// withoutKey returns a copy of the tree without the key.
func withoutKey(tree map[string]any, key string) map[string]any {
	remaining := maps.Clone(tree)
	delete(remaining, key)
	return remaining
}

// isFalsy reports whether Python treats a value as false. Essences must equal Kopf's, which tests them in this way.
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

// WithoutNulls returns a copy of the tree without keys whose value is null, at any depth, but not within lists. A null
// means the same as an absent key.
func WithoutNulls(tree map[string]any) map[string]any {
	remaining := make(map[string]any, len(tree))
	for key, value := range tree {
		switch value := value.(type) {
		case nil:
		case map[string]any:
			remaining[key] = WithoutNulls(value)
		default:
			remaining[key] = value
		}
	}
	return remaining
}
