package jsontext

import (
	"bytes"
	"slices"
)

// comparedLevels is the number of levels of mappings that are compared with a former state: an object, the values of
// its keys, and the values of their keys. Each level scans the text again, so the number must be small.
const comparedLevels = 3

// NewAfter returns a decoded object for a new state of an object. Parts whose text equals that of the former state
// share its values and are not decoded again. So neither value may be modified, which holds for all objects. If the
// former state is nil or not decoded, the result is that of [New].
func NewAfter(text []byte, former *LazyObject) *LazyObject {
	o := New(text)
	// Decoding the former state only for this would cost more than it saves.
	if former == nil || former.text == nil || !former.decoded.Load() {
		return o
	}
	// If this fails, the object stays encoded, and Value decodes the whole text or returns its error.
	if value, ok := decodeAfter(text, former.text, former.value, comparedLevels); ok {
		// Value must not decode the text a second time.
		o.decodeOnce.Do(func() {
			o.value = value
			o.decoded.Store(true)
		})
	}
	return o
}

// maxComparedKeys is the largest number of keys in a mapping that is compared key by key. The members are kept on the
// stack.
const maxComparedKeys = 16

// decodeAfter decodes one mapping by comparing it with its former state. It returns false if the whole text must be
// decoded instead, because the decoder could return another value or an error.
func decodeAfter(text, formerText []byte, former map[string]any, levels int) (value map[string]any, ok bool) {
	// The arrays stay on the stack, as the members are needed only in this call.
	var room [2][maxComparedKeys]RawMember
	before, ok := plainMembers(room[0][:0], formerText)
	if !ok {
		return nil, false
	}
	now, ok := plainMembers(room[1][:0], text)
	if !ok {
		return nil, false
	}
	value = make(map[string]any, len(now))
	for _, m := range now {
		key := string(m.Key)
		if value[key], ok = decodePart(m.Value, lastValueOf(before, m.Key), former[key], levels-1); !ok {
			return nil, false
		}
	}
	return value, true
}

// decodePart decodes the value of one key, or returns the former value if the texts are equal.
func decodePart(text, formerText []byte, former any, levels int) (value any, ok bool) {
	if formerText != nil && bytes.Equal(text, formerText) {
		return former, true
	}
	// A mapping that has changed can still have unchanged parts.
	if mapping, is := former.(map[string]any); is && text[0] == '{' && levels > 0 {
		if value, ok := decodeAfter(text, formerText, mapping, levels); ok {
			return value, true
		}
	}
	value, err := Decode(text)
	return value, err == nil
}

// plainMembers returns the members of an object in the given room. It returns false if there is not enough room, or if
// a key can differ from its decoded form.
func plainMembers(room []RawMember, text []byte) (all []RawMember, ok bool) {
	all, ok = room, true
	whole := EachMember(text, func(m RawMember) {
		if ok = ok && len(all) < cap(all) && isPlainKey(m.Key); ok {
			all = append(all, m)
		}
	})
	return all, whole && ok
}

// isPlainKey reports whether a key consists of printable ASCII characters without escapes, so that its text equals its
// decoded form.
func isPlainKey(key []byte) bool {
	for _, c := range key {
		if c < ' ' || c >= 0x7f || c == '\\' {
			return false
		}
	}
	return true
}

// lastValueOf returns the text of the last value with this key, because decoders also use the last one of duplicates.
func lastValueOf(all []RawMember, key []byte) []byte {
	for _, m := range slices.Backward(all) {
		if bytes.Equal(m.Key, key) {
			return m.Value
		}
	}
	return nil
}
