package jsontext

import "encoding/json"

// String is the text at a path of keys; empty if there is none. It decodes nothing else, and passes over the rest. Keys
// with escapes are not found.
func (o *Object) String(path ...string) (found string) {
	if o == nil {
		return ""
	}
	value := o.text
	if value == nil {
		return o.stringOfValue(path)
	}
	for _, key := range path {
		if value = field(value, key); value == nil {
			return ""
		}
	}
	if value[0] != '"' || json.Unmarshal(value, &found) != nil {
		return ""
	}
	return found
}

func (o *Object) stringOfValue(path []string) string {
	tree, _ := o.Value()
	var value any = tree
	for _, key := range path {
		mapping, _ := value.(map[string]any)
		value = mapping[key]
	}
	found, _ := value.(string)
	return found
}

// field is what stands under a key of an object; nil if the text is no object, or does not have it. As for decoders,
// the last one of several counts.
func field(text []byte, key string) (found []byte) {
	Members(text, func(m Member) {
		if string(m.Key) == key {
			found = m.Value
		}
	})
	return found
}
