package codec

// ComparableContent returns the raw form of an object without its identity and without empty values. It is the basis
// for finding changes: the difference between a nil list, an empty list, null and an absent field is not one.
func (c *Codec[T]) ComparableContent(object T) (map[string]any, error) {
	tree, err := c.encodeRaw(object)
	if err != nil {
		return nil, err
	}
	// Kind and version belong to the identity, which a change cannot alter.
	delete(tree, "apiVersion")
	delete(tree, "kind")
	// The API server changes these fields with each write.
	metadata, _ := tree["metadata"].(map[string]any)
	for _, key := range serverFields {
		delete(metadata, key)
	}
	content := map[string]any{}
	for key, field := range tree {
		// An empty field and an absent one count as the same content.
		if field = RemoveEmpty(field); field != nil {
			content[key] = field
		}
	}
	if content["metadata"] == nil {
		content["metadata"] = map[string]any{} // makes a first label a difference in the labels alone
	}
	return content, nil
}

// RemoveEmpty removes nulls and empty maps and lists in place. It returns nil if nothing is left. Items of lists keep
// their positions.
func RemoveEmpty(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			if field = RemoveEmpty(field); field == nil {
				delete(value, key)
			} else {
				value[key] = field
			}
		}
		if len(value) == 0 {
			return nil
		}
		return value
	case []any:
		for i, item := range value {
			// Removing an item would move the others.
			value[i] = RemoveEmpty(item)
		}
		if len(value) == 0 {
			return nil
		}
		return value
	default:
		return value
	}
}
