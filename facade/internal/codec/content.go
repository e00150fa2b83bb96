package codec

// Content is what a change of the object can be about, in its raw form: without its identity, and without anything
// empty, as nobody cares whether a list is nil, empty, null or absent.
func (c *Codec[T]) Content(object T) (map[string]any, error) {
	tree, err := c.encode(object)
	if err != nil {
		return nil, err
	}
	delete(tree, "apiVersion")
	delete(tree, "kind")
	metadata, _ := tree["metadata"].(map[string]any)
	for _, key := range serverFields {
		delete(metadata, key)
	}
	content := map[string]any{}
	for key, field := range tree {
		if field = withoutEmpty(field); field != nil {
			content[key] = field
		}
	}
	if content["metadata"] == nil {
		content["metadata"] = map[string]any{} // so that a first label is a difference in the labels
	}
	return content, nil
}

// withoutEmpty leaves out, in place, fields with nothing in them; nil is nothing at all.
func withoutEmpty(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			if field = withoutEmpty(field); field == nil {
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
			value[i] = withoutEmpty(item)
		}
		if len(value) == 0 {
			return nil
		}
		return value
	default:
		return value
	}
}
