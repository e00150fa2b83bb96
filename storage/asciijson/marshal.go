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

// Marshal returns the JSON text of a value: nil, bool, string, []any, map[string]any, the numbers of [Append]. No
// spaces, no newline at the end, keys sorted by their bytes; strings as in [AppendString].
//
// It is an error, naming the place, if there is anything else in the value: another Go type, or a float that is not a
// number or infinite.
func Marshal(value any) (string, error) {
	e := acquire()
	defer e.release()
	if err := e.value(value); err != nil {
		return "", fmt.Errorf("encoding as json: %w", err)
	}
	return string(e.text), nil
}

// Writes tells whether a text is what [Marshal] returns for a value. It allocates nothing.
func Writes(text string, value any) bool {
	e := acquire()
	defer e.release()
	return e.value(value) == nil && string(e.text) == text
}

// Size is how many bytes [Marshal] returns, with the same errors. It allocates nothing.
func Size(value any) (int, error) {
	e := acquire()
	defer e.release()
	if err := e.value(value); err != nil {
		return 0, fmt.Errorf("encoding as json: %w", err)
	}
	return len(e.text), nil
}

// Append appends what [Marshal] returns to a text; on an error, it returns the text as it was.
//
// Integers (int64, int32, int) are written as such. Floats (float64, float32) are written as Python writes them: in the
// shortest form that is read back as the same float, and with a fraction or an exponent even if they are whole. Without
// that, a large one would be read back as another integer. A [json.Number] is written as it is.
func Append(text []byte, value any) ([]byte, error) {
	e := acquire()
	defer e.release()
	if err := e.value(value); err != nil {
		return text, fmt.Errorf("encoding as json: %w", err)
	}
	return append(text, e.text...), nil
}

// encoder is one pass over a value. It is reused, for that the pass allocates nothing but the result.
type encoder struct {
	text []byte
	keys []string // a stack: the sorted keys of each mapping that is being written, the innermost last
}

var encoders sync.Pool

func acquire() *encoder {
	if e, ok := encoders.Get().(*encoder); ok {
		return e
	}
	return new(encoder)
}

// maxReused is how large the text of an encoder may be that is used again: one huge object must not fill the memory
// for long.
const maxReused = 64 << 10

func (e *encoder) release() {
	if cap(e.text) > maxReused {
		return
	}
	e.text = e.text[:0]
	clear(e.keys[:cap(e.keys)])
	e.keys = e.keys[:0]
	encoders.Put(e)
}

func (e *encoder) value(value any) error {
	switch value := value.(type) {
	case nil:
		e.text = append(e.text, "null"...)
	case bool:
		e.text = strconv.AppendBool(e.text, value)
	case string:
		e.text = AppendString(e.text, value)
	case map[string]any:
		return e.mapping(value)
	case []any:
		return e.list(value)
	default:
		return e.number(value)
	}
	return nil
}

func (e *encoder) mapping(mapping map[string]any) error {
	if mapping == nil {
		return e.value(nil)
	}
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
		key := e.keys[i]
		e.text = append(AppendString(e.text, key), ':')
		if err := e.value(mapping[key]); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	e.text = append(e.text, '}')
	e.keys = e.keys[:bottom]
	return nil
}

func (e *encoder) list(list []any) error {
	if list == nil {
		return e.value(nil)
	}
	e.text = append(e.text, '[')
	for i, value := range list {
		if i > 0 {
			e.text = append(e.text, ',')
		}
		if err := e.value(value); err != nil {
			return fmt.Errorf("%d: %w", i, err)
		}
	}
	e.text = append(e.text, ']')
	return nil
}

func (e *encoder) number(value any) error {
	switch value := value.(type) {
	case int64:
		e.text = strconv.AppendInt(e.text, value, 10)
	case int32:
		e.text = strconv.AppendInt(e.text, int64(value), 10)
	case int:
		e.text = strconv.AppendInt(e.text, int64(value), 10)
	case float64:
		return e.float(value)
	case float32:
		return e.float(float64(value))
	case json.Number:
		if !isNumber(value) {
			return fmt.Errorf("%q is not a number", string(value))
		}
		e.text = append(e.text, value...)
	default:
		return fmt.Errorf("a value of type %T is not json", value)
	}
	return nil
}

// The bounds between which floats are written without an exponent: those of Python.
const (
	smallest = 1e-4
	largest  = 1e16
)

var errNotFinite = errors.New("json has no infinite numbers and none that are not a number")

func (e *encoder) float(float float64) error {
	if math.IsNaN(float) || math.IsInf(float, 0) {
		return errNotFinite
	}
	size := math.Abs(float)
	if size != 0 && (size < smallest || size >= largest) {
		e.text = strconv.AppendFloat(e.text, float, 'e', -1, 64)
		return nil
	}
	e.text = strconv.AppendFloat(e.text, float, 'f', -1, 64)
	if math.Trunc(float) == float {
		e.text = append(e.text, ".0"...)
	}
	return nil
}

// isNumber tells whether a literal is one number in JSON: all else that is JSON begins otherwise, or ends in a space.
func isNumber(literal json.Number) bool {
	if literal == "" || literal[0] != '-' && !isDigit(literal[0]) || !isDigit(literal[len(literal)-1]) {
		return false
	}
	return json.Valid([]byte(literal))
}

func isDigit(char byte) bool {
	return '0' <= char && char <= '9'
}
