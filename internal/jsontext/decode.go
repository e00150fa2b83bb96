package jsontext

import (
	"bytes"
	"strconv"
	"strings"
	"sync"

	kjson "sigs.k8s.io/json"
)

// Decode decodes any JSON value. Integers are int64 if they fit, and all other numbers are float64. The value shares no
// memory with the text. The errors are those of sigs.k8s.io/json.
func Decode(text []byte) (value any, err error) {
	if value, plain := decodePlain(text); plain {
		return value, nil
	}
	err = kjson.UnmarshalCaseSensitivePreserveInts(text, &value)
	return value, err
}

// DecodeString is [Decode] for a text in a string.
func DecodeString(text string) (value any, err error) { return Decode([]byte(text)) }

// DecodeObject is [Decode] for an object. It returns a nil object for the text null, and an error for any other value.
func DecodeObject(text []byte) (object map[string]any, err error) {
	if value, plain := decodePlain(text); plain {
		if object, is := value.(map[string]any); is {
			return object, nil
		}
	}
	// Other values go to that decoder, too, because it makes the error message.
	err = kjson.UnmarshalCaseSensitivePreserveInts(text, &object)
	return object, err
}

// maxPlainDepth is the largest depth of values in plain texts. It limits the recursion.
const maxPlainDepth = 100

// maxPooledSize limits the buffers of pooled decoders: the number of values, and the bytes of an unescaped string.
const maxPooledSize = 16 << 10

// decoder has the buffers that the next text can reuse.
type decoder struct {
	// keys and values are stacks with the members of mappings and lists that are not complete. Their number is known
	// only at the end; then they are copied into a map or a slice of the exact size.
	keys   []string
	values []any
	names  keyCache
	depth  int    // the depth of the current value
	runes  []byte // the unescaped form of a string with escapes
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// decodePlain decodes the whole text. It returns false if the text is not plain, which means that it could be
// malformed, or that sigs.k8s.io/json could return a different value. Encoders write plain texts.
func decodePlain(text []byte) (value any, plain bool) {
	d, _ := decoders.Get().(*decoder)
	defer d.returnToPool()
	value, at := d.decodeValue(text, skipSpace(text, 0))
	return value, at > 0 && skipSpace(text, at) == len(text)
}

// returnToPool empties the decoder, which may have values of a text that was not plain, and returns it to the pool.
func (d *decoder) returnToPool() {
	// One large text must not occupy memory permanently.
	if cap(d.values) > maxPooledSize || cap(d.runes) > maxPooledSize {
		return
	}
	d.truncateStacks(0, 0)
	d.depth = 0
	decoders.Put(d)
}

// truncateStacks removes the keys and values from these positions on. It clears them, because a pooled decoder would
// otherwise keep them in memory.
func (d *decoder) truncateStacks(keys, values int) {
	clear(d.keys[keys:])
	clear(d.values[values:])
	d.keys, d.values = d.keys[:keys], d.values[:values]
}

// decodeValue decodes the value at a position, and returns the position after it, or zero if the text is not plain
// there.
func (d *decoder) decodeValue(text []byte, at int) (value any, after int) {
	if at >= len(text) {
		return nil, 0
	}
	switch text[at] {
	case '"':
		raw, escapes, after := scanString(text, at)
		if after == 0 {
			return nil, 0
		}
		found, plain := d.unescapeString(raw, escapes)
		// This copies the bytes, as the text and the buffer may be reused.
		return string(found), ifPlain(plain, after)
	case '{', '[':
		// The other decoder has a limit of its own, and an error for it.
		if d.depth++; d.depth > maxPlainDepth {
			return nil, 0
		}
		value, after = d.decodeComposite(text, at)
		d.depth--
		return value, after
	case 't':
		return true, skipLiteral(text, at, "true")
	case 'f':
		return false, skipLiteral(text, at, "false")
	case 'n':
		return nil, skipLiteral(text, at, "null")
	default:
		return decodeNumber(text, at)
	}
}

// ifPlain returns the position if the text is plain, and zero otherwise. Zero is never the position after a value.
func ifPlain(plain bool, after int) int {
	if plain {
		return after
	}
	return 0
}

// decodeComposite decodes an object or a list.
func (d *decoder) decodeComposite(text []byte, at int) (value any, after int) {
	// The members of enclosing values remain below these positions of the stacks.
	keys, values := len(d.keys), len(d.values)
	if text[at] == '{' {
		if at = d.decodeMembers(text, at); at == 0 {
			return nil, 0
		}
		object := make(map[string]any, len(d.keys)-keys)
		for i, key := range d.keys[keys:] {
			object[key] = d.values[values+i]
		}
		value = object
	} else {
		if at = d.decodeElements(text, at); at == 0 {
			return nil, 0
		}
		// An empty list is not nil, as in the other decoder.
		list := make([]any, len(d.values)-values)
		copy(list, d.values[values:])
		value = list
	}
	d.truncateStacks(keys, values)
	return value, at
}

// decodeMembers pushes the members of the object at a position, and returns the position after it.
func (d *decoder) decodeMembers(text []byte, at int) (after int) {
	if at = skipSpace(text, at+1); at < len(text) && text[at] == '}' {
		return at + 1
	}
	for at < len(text) && text[at] == '"' {
		raw, escapes, colon := scanString(text, at)
		if colon == 0 {
			return 0
		}
		key, plain := d.unescapeString(raw, escapes)
		if colon = skipSpace(text, colon); !plain || colon >= len(text) || text[colon] != ':' {
			return 0
		}
		// The value's own members are pushed above the key, and removed before the value is pushed: each key keeps the
		// same offset as its value.
		d.keys = append(d.keys, d.names.internKey(key))
		if at = d.pushValue(text, skipSpace(text, colon+1)); at == 0 {
			return 0
		}
		switch text[at] {
		case '}':
			return at + 1
		case ',':
			at = skipSpace(text, at+1)
		default:
			return 0
		}
	}
	return 0
}

// decodeElements pushes the elements of the list at a position, and returns the position after it.
func (d *decoder) decodeElements(text []byte, at int) (after int) {
	if at = skipSpace(text, at+1); at < len(text) && text[at] == ']' {
		return at + 1
	}
	for {
		if at = d.pushValue(text, at); at == 0 {
			return 0
		}
		switch text[at] {
		case ']':
			return at + 1
		case ',':
			at = skipSpace(text, at+1)
		default:
			return 0
		}
	}
}

// pushValue decodes and pushes a value, and returns the position of the next character after white space. It returns
// zero at the end of the text, because a member or an element cannot be the last part of it.
func (d *decoder) pushValue(text []byte, at int) (next int) {
	value, at := d.decodeValue(text, at)
	if at == 0 {
		return 0
	}
	d.values = append(d.values, value)
	return ifPlain(skipSpace(text, at) < len(text), skipSpace(text, at))
}

// skipLiteral returns the position after one of the literals true, false and null.
func skipLiteral(text []byte, at int, wanted string) (after int) {
	end := at + len(wanted)
	return ifPlain(end <= len(text) && string(text[at:min(end, len(text))]) == wanted, end)
}

// decodeNumber decodes the number at a position. Integers, which are the usual case, are parsed here.
func decodeNumber(text []byte, at int) (value any, after int) {
	end := at
	// All characters that can occur in a number; their order is checked below.
	for end < len(text) && strings.IndexByte("0123456789-+.eE", text[end]) >= 0 {
		end++
	}
	written := text[at:end]
	// An integer that exceeds int64 becomes a float, as in the other decoder.
	if isPlainInteger(written) {
		if whole, err := strconv.ParseInt(string(written), 10, 64); err == nil {
			return whole, end
		}
	}
	found, err := decodeOtherNumber(written)
	return found, ifPlain(err == nil, end)
}

// decodeOtherNumber decodes any other number. It is a function of its own because its variable escapes to the heap,
// which would otherwise cost an allocation for every number.
func decodeOtherNumber(number []byte) (value any, err error) {
	err = kjson.UnmarshalCaseSensitivePreserveInts(number, &value)
	return value, err
}

// isPlainInteger reports whether the number is an integer as encoders write it, without leading zeros. It can exceed
// int64.
func isPlainInteger(number []byte) bool {
	number = bytes.TrimPrefix(number, []byte("-"))
	for _, c := range number {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(number) > 0 && number[0] != '0' || len(number) == 1
}
