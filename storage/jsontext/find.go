package jsontext

import (
	"encoding/json"
)

// String is the text at a path of keys; empty if there is none. It decodes nothing else, and passes over the rest. Keys
// with escapes are not found.
func (o *Object) String(path ...string) (found string) {
	if !o.Encoded() {
		found, _ = o.valueAt(path).(string)
		return found
	}
	return decodedString(o.textAt(path))
}

// decodedString has a variable of its own to decode into: the compiler puts such a one on the heap, and most objects
// are decoded already.
func decodedString(text []byte) (found string) {
	if len(text) == 0 || text[0] != '"' || json.Unmarshal(text, &found) != nil {
		return ""
	}
	return found
}

// Mapping is String for an object within the object; nil if there is none. It is shared: callers must not modify it.
func (o *Object) Mapping(path ...string) (found map[string]any) {
	if !o.Encoded() {
		found, _ = o.valueAt(path).(map[string]any)
		return found
	}
	text := o.textAt(path)
	if len(text) == 0 {
		return nil
	}
	if found, err := DecodeObject(text); err == nil {
		return found
	}
	return nil
}

func (o *Object) valueAt(path []string) any {
	tree, _ := o.Value()
	var value any = tree
	for _, key := range path {
		mapping, _ := value.(map[string]any)
		value = mapping[key]
	}
	return value
}

func (o *Object) textAt(path []string) []byte {
	value := o.textFor(path)
	for _, key := range path {
		if value = field(value, key); value == nil {
			return nil
		}
	}
	return value
}

// textFor is a text that has what is at the path, if anything has. Many ask for metadata alone, which a source has
// sooner than the whole.
func (o *Object) textFor(path []string) []byte {
	if o.from == nil || len(path) == 0 || path[0] != "metadata" {
		return o.Text()
	}
	text, err := o.from.Metadata()
	if err != nil {
		return nil // whoever asks for the whole is told
	}
	return text
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
