package diff

import "slices"

// Copy returns a value that shares no mapping and no list with the given one, so that either can be modified. Values
// that are not of JSON stay as they are; nil mappings and lists become nulls.
func Copy(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if value == nil {
			return nil
		}
		copied := make(map[string]any, len(value))
		for key, inner := range value {
			copied[key] = Copy(inner)
		}
		return copied
	case []any:
		if value == nil {
			return nil
		}
		copied := make([]any, len(value))
		for i, item := range value {
			copied[i] = Copy(item)
		}
		return copied
	default:
		return value
	}
}

// Clone returns a diff that shares nothing with this one, nor with the values that it was computed from.
func (d Diff) Clone() Diff {
	cloned := slices.Clone(d)
	for i, item := range d {
		cloned[i] = Item{Op: item.Op, Path: slices.Clone(item.Path), Old: Copy(item.Old), New: Copy(item.New)}
	}
	return cloned
}
