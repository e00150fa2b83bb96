package jsontext

import (
	"encoding/json"
)

// StringAt returns the string at a path of keys, and an empty one if there is none. It skips the rest of the text without
// decoding it. Keys with escapes are not found.
func (o *LazyObject) StringAt(path ...string) (found string) {
	if !o.IsEncoded() {
		found, _ = o.valueAt(path).(string)
		return found
	}
	return decodedString(o.textAt(path))
}

// decodedString decodes one string. It is a function of its own because its variable escapes to the heap, and most
// objects are decoded already.
func decodedString(text []byte) (found string) {
	// A value of another type is not a string, even if it could be decoded.
	if len(text) == 0 || text[0] != '"' || json.Unmarshal(text, &found) != nil {
		return ""
	}
	return found
}

// MappingAt is like [LazyObject.StringAt] for an object within the object; it returns nil if there is none. The mapping is
// shared: callers must not modify it.
func (o *LazyObject) MappingAt(path ...string) (found map[string]any) {
	if !o.IsEncoded() {
		found, _ = o.valueAt(path).(map[string]any)
		return found
	}
	text := o.textAt(path)
	if len(text) == 0 {
		return nil
	}
	// The text null decodes to nil, which means absence, too.
	if found, err := DecodeObject(text); err == nil {
		return found
	}
	return nil
}

// valueAt returns the decoded value at a path, nil if there is none. Errors of decoding count as absence;
// [LazyObject.Value] returns them.
func (o *LazyObject) valueAt(path []string) any {
	tree, _ := o.Value()
	var value any = tree
	for _, key := range path {
		mapping, _ := value.(map[string]any)
		value = mapping[key]
	}
	return value
}

// textAt returns the text of the value at a path, nil if there is none.
func (o *LazyObject) textAt(path []string) []byte {
	value := o.textForPath(path)
	for _, key := range path {
		if value = memberValue(value, key); value == nil {
			return nil
		}
	}
	return value
}

// textForPath returns a text that includes the path if the object does. Most callers need the metadata only, which a source
// provides faster than the whole object.
func (o *LazyObject) textForPath(path []string) []byte {
	if o.from == nil || len(path) == 0 || path[0] != "metadata" {
		return o.Text()
	}
	text, err := o.from.MetadataJSON()
	if err != nil {
		// The caller sees absence; Value returns the error of a damaged source.
		return nil
	}
	return text
}

// memberValue returns the text of the value under a key of an object, and nil if the text is not an object or does not have
// the key. As in decoders, the last one of duplicates counts.
func memberValue(text []byte, key string) (found []byte) {
	EachMember(text, func(m RawMember) {
		if string(m.Key) == key {
			found = m.Value
		}
	})
	return found
}
