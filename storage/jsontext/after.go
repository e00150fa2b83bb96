package jsontext

import (
	"bytes"

	kjson "sigs.k8s.io/json"
)

// deepest is how many levels of mappings are compared with those of a former state: an object, what is under its keys,
// and what is under the keys of that. Each level is looked through anew, so it must not be as deep as texts can be.
const deepest = 3

// After is New, and Value at once, for another state of an object: where a part of it has the same text as in the
// former state, it is the same value, which is not decoded again. So neither value may be modified, as always. The
// former state is nil, or not decoded, if nothing is known of it.
func After(text []byte, former *Object) *Object {
	o := New(text)
	if former == nil || former.text == nil || !former.decoded.Load() {
		return o
	}
	if value, ok := decodeAfter(text, former.text, former.value, deepest); ok {
		o.once.Do(func() {
			o.value = value
			o.decoded.Store(true)
		})
	}
	return o
}

// decodeAfter decodes one mapping. It fails where the decoder has to see the whole: that may find another value, or say
// what is wrong.
func decodeAfter(text, formerText []byte, former map[string]any, levels int) (value map[string]any, ok bool) {
	before, ok := membersByKey(formerText)
	if !ok {
		return nil, false
	}
	now, ok := membersByKey(text)
	if !ok {
		return nil, false
	}
	value = make(map[string]any, len(now))
	for key, part := range now {
		if value[key], ok = decodePart(part, before[key], former[key], levels-1); !ok {
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
	err := kjson.UnmarshalCaseSensitivePreserveInts(text, &value)
	return value, err == nil
}

// membersByKey are the texts of an object's values; the last one of several counts, as for decoders. It fails for keys
// that are not in the text as they are decoded.
func membersByKey(text []byte) (all map[string][]byte, ok bool) {
	all, ok = map[string][]byte{}, true
	whole := Members(text, func(m Member) {
		all[string(m.Key)] = m.Value
		for _, c := range m.Key {
			ok = ok && c >= ' ' && c < 0x7f && c != '\\'
		}
	})
	return all, whole && ok
}
