package asciijson

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
)

// Marshal returns the JSON text of a value: nil, bool, string, []any, map[string]any, or one of the numbers of
// [AppendValue]. The text has no spaces and no newline at the end. Keys are sorted by their bytes, and strings are
// encoded by [AppendString].
//
// # Errors
//
// It returns an error that names the place if the value contains another Go type, an infinite float or a NaN.
func Marshal(value any) (text string, err error) {
	err = encode(value, func(encoded []byte) { text = string(encoded) })
	return text, err
}

// IsEncodingOf reports whether [Marshal] returns this text for the value. It does not allocate.
func IsEncodingOf(text string, value any) (is bool) {
	err := encode(value, func(encoded []byte) { is = string(encoded) == text })
	return is && err == nil
}

// EncodedSize returns the number of bytes that [Marshal] returns, with the same errors. It does not allocate.
func EncodedSize(value any) (size int, err error) {
	err = encode(value, func(encoded []byte) { size = len(encoded) })
	return size, err
}

// AppendValue appends the result of [Marshal] to a text. On an error, it returns the text unchanged.
//
// Integers (int64, int32, int) are written as integers. Floats (float64, float32) are written as Python writes them: in
// the shortest form that decodes to the same float, and with a fraction or an exponent even if they are whole.
// Otherwise, a large float would be decoded as a different integer. A [json.Number] is written unchanged.
func AppendValue(text []byte, value any) ([]byte, error) {
	// The value is encoded into the encoder's own buffer first, so that an error leaves the text as it was.
	err := encode(value, func(encoded []byte) { text = append(text, encoded...) })
	return text, err
}

// encode calls use with the encoded value, which is valid only during the call. After an error, it does not call it.
func encode(value any, use func(encoded []byte)) error {
	e, _ := encoders.Get().(*encoder)
	defer e.returnToPool()
	if err := e.appendValue(value); err != nil {
		return fmt.Errorf("encoding as json: %w", err)
	}
	use(e.text)
	return nil
}

// encoder encodes one value. Encoders are pooled, so that encoding allocates nothing but the result.
type encoder struct {
	text []byte
	keys []string // a stack: the sorted keys of each mapping that is being written, the innermost last
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// maxReused is the largest text buffer in bytes that returns to the pool. One huge object must not occupy memory
// permanently.
const maxReused = 64 << 10

// returnToPool returns the encoder to the pool, unless its buffer is too large. It clears the keys, which would
// otherwise keep the encoded object in memory.
func (e *encoder) returnToPool() {
	if cap(e.text) > maxReused {
		return
	}
	e.text = e.text[:0]
	clear(e.keys[:cap(e.keys)])
	e.keys = e.keys[:0]
	encoders.Put(e)
}

// appendValue appends the JSON of any value.
func (e *encoder) appendValue(value any) error {
	switch value := value.(type) {
	case nil:
		e.text = append(e.text, "null"...)
	case bool:
		e.text = strconv.AppendBool(e.text, value)
	case string:
		e.text = AppendString(e.text, value)
	case map[string]any:
		return e.appendMapping(value)
	case []any:
		return e.appendList(value)
	default:
		return e.appendNumber(value)
	}
	return nil
}

// appendMapping appends a mapping with sorted keys. A nil map is null, as in encoding/json.
func (e *encoder) appendMapping(mapping map[string]any) error {
	if mapping == nil {
		return e.appendValue(nil)
	}
	// The keys of nested mappings share one stack, so that no level allocates a slice of its own.
	bottom := len(e.keys)
	for key := range mapping {
		e.keys = append(e.keys, key)
	}
	top := len(e.keys)
	slices.Sort(e.keys[bottom:top])
	e.text = append(e.text, '{')
	for i := bottom; i < top; i++ {
		if i > bottom {
			e.text = append(e.text, ',')
		}
		// The stack can move while the value is encoded, so the key is read by its index.
		key := e.keys[i]
		e.text = append(AppendString(e.text, key), ':')
		if err := e.appendValue(mapping[key]); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	e.text = append(e.text, '}')
	e.keys = e.keys[:bottom]
	return nil
}

// appendList appends a list. A nil slice is null, as in encoding/json.
func (e *encoder) appendList(list []any) error {
	if list == nil {
		return e.appendValue(nil)
	}
	e.text = append(e.text, '[')
	for i, value := range list {
		if i > 0 {
			e.text = append(e.text, ',')
		}
		if err := e.appendValue(value); err != nil {
			return fmt.Errorf("%d: %w", i, err)
		}
	}
	e.text = append(e.text, ']')
	return nil
}

// appendNumber appends a number of one of the supported Go types.
func (e *encoder) appendNumber(value any) error {
	switch value := value.(type) {
	case int64:
		e.text = strconv.AppendInt(e.text, value, 10)
	case int32:
		e.text = strconv.AppendInt(e.text, int64(value), 10)
	case int:
		e.text = strconv.AppendInt(e.text, int64(value), 10)
	case float64:
		return e.appendFloat(value)
	case float32:
		return e.appendFloat(float64(value))
	case json.Number:
		if !isNumberLiteral(value) {
			return fmt.Errorf("%q is not a number", string(value))
		}
		e.text = append(e.text, value...)
	default:
		return fmt.Errorf("a value of type %T is not json", value)
	}
	return nil
}

// The range of floats that Python writes without an exponent: at least 1e-4 and below 1e16.
const (
	minPlainFloat = 1e-4
	maxPlainFloat = 1e16
)

// errNotFinite is the error of floats that JSON cannot express.
var errNotFinite = errors.New("json has no infinite numbers and none that are not a number")

// appendFloat appends a float as Python's repr writes it.
func (e *encoder) appendFloat(float float64) error {
	if math.IsNaN(float) || math.IsInf(float, 0) {
		return errNotFinite
	}
	size := math.Abs(float)
	if size != 0 && (size < minPlainFloat || size >= maxPlainFloat) {
		e.text = strconv.AppendFloat(e.text, float, 'e', -1, 64)
		return nil
	}
	e.text = strconv.AppendFloat(e.text, float, 'f', -1, 64)
	// Without the fraction, a decoder would return an integer.
	if math.Trunc(float) == float {
		e.text = append(e.text, ".0"...)
	}
	return nil
}

// isNumberLiteral reports whether a literal is exactly one JSON number. Other JSON values begin differently;
// surrounding spaces are excluded by the check of both ends.
func isNumberLiteral(literal json.Number) bool {
	if literal == "" || literal[0] != '-' && !isDigit(literal[0]) || !isDigit(literal[len(literal)-1]) {
		return false
	}
	return json.Valid([]byte(literal))
}

// isDigit reports whether a byte is a decimal digit.
func isDigit(char byte) bool {
	return '0' <= char && char <= '9'
}
