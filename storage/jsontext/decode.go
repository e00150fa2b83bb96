package jsontext

import (
	"bytes"
	"strconv"
	"strings"
	"sync"

	kjson "sigs.k8s.io/json"
)

// Decode decodes any value: integers to int64 if they fit in, all other numbers to float64. The value shares nothing
// with the text. The errors are those of sigs.k8s.io/json.
func Decode(text []byte) (value any, err error) {
	if value, plain := decodePlain(text); plain {
		return value, nil
	}
	err = kjson.UnmarshalCaseSensitivePreserveInts(text, &value)
	return value, err
}

// DecodeString is like Decode, for a string.
func DecodeString(text string) (value any, err error) {
	if value, plain := decodePlain([]byte(text)); plain {
		return value, nil
	}
	err = kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &value)
	return value, err
}

// DecodeObject is like Decode, for an object. The text null is a nil object; any other value is an error.
func DecodeObject(text []byte) (object map[string]any, err error) {
	if value, plain := decodePlain(text); plain {
		if object, is := value.(map[string]any); is {
			return object, nil
		}
	}
	err = kjson.UnmarshalCaseSensitivePreserveInts(text, &object)
	return object, err
}

// deepest is how deep the values of plain texts are nested at most.
const deepest = 100

// mostKept is how many values, or bytes of a string, a decoder has room for that is kept.
const mostKept = 16 << 10

// decoder keeps what can be used again for the next text.
type decoder struct {
	// keys and values are those of the mappings and lists that are not complete: how many there are is known at their
	// end, and they take as much memory as they need then.
	keys   []string
	values []any
	names  names
	deep   int
	runes  []byte // of a string with escapes
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// decodePlain decodes the whole text, and fails where it is not plain. It is read as it is written by encoders, for
// which the decoder of sigs.k8s.io/json is to find the same value.
func decodePlain(text []byte) (value any, plain bool) {
	d, _ := decoders.Get().(*decoder)
	defer d.end()
	value, at := d.value(text, space(text, 0))
	return value, at > 0 && space(text, at) == len(text)
}

// end forgets what is left of a text that was not decoded.
func (d *decoder) end() {
	if cap(d.values) > mostKept || cap(d.runes) > mostKept {
		return // one large text must not take its memory for ever
	}
	d.forget(0, 0)
	d.deep = 0
	decoders.Put(d)
}

// forget drops the keys and values from there on: a decoder that is kept must not keep them, too.
func (d *decoder) forget(keys, values int) {
	clear(d.keys[keys:])
	clear(d.values[values:])
	d.keys, d.values = d.keys[:keys], d.values[:values]
}

// value decodes the value that begins here, and gives the place after it; zero if it is not plain.
func (d *decoder) value(text []byte, at int) (value any, after int) {
	if at >= len(text) {
		return nil, 0
	}
	switch text[at] {
	case '"':
		raw, escapes, after := quoted(text, at)
		if after == 0 {
			return nil, 0
		}
		found, plain := d.unescaped(raw, escapes)
		return string(found), ifPlain(plain, after)
	case '{', '[':
		if d.deep++; d.deep > deepest {
			return nil, 0
		}
		value, after = d.several(text, at)
		d.deep--
		return value, after
	case 't':
		return true, word(text, at, "true")
	case 'f':
		return false, word(text, at, "false")
	case 'n':
		return nil, word(text, at, "null")
	default:
		return number(text, at)
	}
}

func ifPlain(plain bool, after int) int {
	if plain {
		return after
	}
	return 0
}

// several decodes an object or a list.
func (d *decoder) several(text []byte, at int) (value any, after int) {
	keys, values := len(d.keys), len(d.values)
	if text[at] == '{' {
		if at = d.members(text, at); at == 0 {
			return nil, 0
		}
		object := make(map[string]any, len(d.keys)-keys)
		for i, key := range d.keys[keys:] {
			object[key] = d.values[values+i]
		}
		value = object
	} else {
		if at = d.elements(text, at); at == 0 {
			return nil, 0
		}
		list := make([]any, len(d.values)-values)
		copy(list, d.values[values:])
		value = list
	}
	d.forget(keys, values)
	return value, at
}

// members pushes the members of the object that begins here.
func (d *decoder) members(text []byte, at int) (after int) {
	if at = space(text, at+1); at < len(text) && text[at] == '}' {
		return at + 1
	}
	for at < len(text) && text[at] == '"' {
		raw, escapes, colon := quoted(text, at)
		if colon == 0 {
			return 0
		}
		key, plain := d.unescaped(raw, escapes)
		if colon = space(text, colon); !plain || colon >= len(text) || text[colon] != ':' {
			return 0
		}
		d.keys = append(d.keys, d.names.of(key))
		if at = d.push(text, space(text, colon+1)); at == 0 {
			return 0
		}
		switch text[at] {
		case '}':
			return at + 1
		case ',':
			at = space(text, at+1)
		default:
			return 0
		}
	}
	return 0
}

// elements pushes the elements of the list that begins here.
func (d *decoder) elements(text []byte, at int) (after int) {
	if at = space(text, at+1); at < len(text) && text[at] == ']' {
		return at + 1
	}
	for {
		if at = d.push(text, at); at == 0 {
			return 0
		}
		switch text[at] {
		case ']':
			return at + 1
		case ',':
			at = space(text, at+1)
		default:
			return 0
		}
	}
}

// push decodes a value, and gives the place of what comes after it; zero if that is nothing.
func (d *decoder) push(text []byte, at int) (next int) {
	value, at := d.value(text, at)
	if at == 0 {
		return 0
	}
	d.values = append(d.values, value)
	return ifPlain(space(text, at) < len(text), space(text, at))
}

func word(text []byte, at int, wanted string) (after int) {
	end := at + len(wanted)
	return ifPlain(end <= len(text) && string(text[at:min(end, len(text))]) == wanted, end)
}

// number decodes the number that begins here: a usual one at once.
func number(text []byte, at int) (value any, after int) {
	end := at
	for end < len(text) && strings.IndexByte("0123456789-+.eE", text[end]) >= 0 {
		end++
	}
	written := text[at:end]
	if usual(written) {
		if whole, err := strconv.ParseInt(string(written), 10, 64); err == nil {
			return whole, end
		}
	}
	found, err := unusual(written)
	return found, ifPlain(err == nil, end)
}

// unusual has a variable of its own to decode into: the compiler puts such a one on the heap.
func unusual(number []byte) (value any, err error) {
	err = kjson.UnmarshalCaseSensitivePreserveInts(number, &value)
	return value, err
}

// usual tells whether it is an integer, written as encoders do. It may be too large.
func usual(number []byte) bool {
	number = bytes.TrimPrefix(number, []byte("-"))
	for _, c := range number {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(number) > 0 && number[0] != '0' || len(number) == 1
}
