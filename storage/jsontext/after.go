package jsontext

import (
	"bytes"
	"slices"
)

// comparedLevels is how many levels of mappings are compared with those of a former state: an object, the values of its
// keys, and the values of their keys. Each level is scanned again, so the number must be small.
const comparedLevels = 3

// After is New, and Value at once, for another state of an object: where a part of it has the same text as in the
// former state, it is the same value, which is not decoded again. So neither value may be modified, as always. The
// former state is nil, or not decoded, if nothing is known of it.
func After(text []byte, former *Object) *Object {
	o := New(text)
	if former == nil || former.text == nil || !former.decoded.Load() {
		return o
	}
	if value, ok := decodeAfter(text, former.text, former.value, comparedLevels); ok {
		o.once.Do(func() {
			o.value = value
			o.decoded.Store(true)
		})
	}
	return o
}

// widest is how many keys a mapping may have to be compared key by key.
const widest = 16

// decodeAfter decodes one mapping. It fails where the decoder has to see the whole: that may find another value, or say
// what is wrong.
func decodeAfter(text, formerText []byte, former map[string]any, levels int) (value map[string]any, ok bool) {
	var room [2][widest]Member
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
		if value[key], ok = decodePart(m.Value, valueOf(before, m.Key), former[key], levels-1); !ok {
			return nil, false
		}
	}
	return value, true
}

func decodePart(text, formerText []byte, former any, levels int) (value any, ok bool) {
	if formerText != nil && bytes.Equal(text, formerText) {
		return former, true
	}
	if mapping, is := former.(map[string]any); is && text[0] == '{' && levels > 0 {
		if value, ok := decodeAfter(text, formerText, mapping, levels); ok {
			return value, true
		}
	}
	value, err := Decode(text)
	return value, err == nil
}

// plainMembers are the members of an object in the room that there is for them. It fails without room, and for keys
// that are not in the text as they are decoded.
func plainMembers(room []Member, text []byte) (all []Member, ok bool) {
	all, ok = room, true
	whole := Members(text, func(m Member) {
		if ok = ok && len(all) < cap(all) && plain(m.Key); ok {
			all = append(all, m)
		}
	})
	return all, whole && ok
}

func plain(key []byte) bool {
	for _, c := range key {
		if c < ' ' || c >= 0x7f || c == '\\' {
			return false
		}
	}
	return true
}

// valueOf is the last one of several, as for decoders.
func valueOf(all []Member, key []byte) []byte {
	for _, m := range slices.Backward(all) {
		if bytes.Equal(m.Key, key) {
			return m.Value
		}
	}
	return nil
}
