package diff

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
)

// Equal tells whether two JSON values are the same in type and value, at any depth.
//
// Numbers are of one type: 1 equals 1.0, and a large integer equals a float only if the float is exactly that integer;
// int, int32, float32 and [json.Number] count as numbers too. A boolean is no number: true does not equal 1 (deviation
// D-types; in Kopf it does). It is strict about null: {"x": null} does not equal {}, while [Compute] sees no difference
// there. A nil map or slice is null, as it is in JSON. Values of other Go types are compared by [reflect.DeepEqual].
func Equal(a, b any) bool {
	if isNull(a) || isNull(b) {
		return isNull(a) && isNull(b)
	}
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		return ok && a == b
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && equalMappings(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, Equal)
	}
	if x, ok := toNumber(a); ok {
		y, ok := toNumber(b)
		return ok && x.equal(y)
	}
	return reflect.DeepEqual(a, b)
}

func equalMappings(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		other, ok := b[key]
		if !ok || !Equal(value, other) {
			return false
		}
	}
	return true
}

// isNull tells whether a value is null. So is a nil map inside of an interface, such as the old state of a new object:
// otherwise, a creation would look like keys that were added to an empty object.
func isNull(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		return value == nil
	case []any:
		return value == nil
	}
	return false
}

// number is an integer or a float: a float cannot hold all integers, nor an integer all floats.
type number struct {
	integral bool
	integer  int64
	float    float64
}

func toNumber(value any) (number, bool) {
	switch value := value.(type) {
	case int64:
		return number{integral: true, integer: value}, true
	case float64:
		return number{float: value}, true
	case int:
		return number{integral: true, integer: int64(value)}, true
	case int32:
		return number{integral: true, integer: int64(value)}, true
	case float32:
		return number{float: float64(value)}, true
	case json.Number:
		return parseNumber(string(value))
	}
	return number{}, false
}

// parseNumber reads a number as apimachinery decodes it. What exceeds even a float is left to be compared as text.
func parseNumber(literal string) (number, bool) {
	if integer, err := strconv.ParseInt(literal, 10, 64); err == nil {
		return number{integral: true, integer: integer}, true
	}
	float, err := strconv.ParseFloat(literal, 64)
	return number{float: float}, err == nil
}

func (n number) equal(other number) bool {
	switch {
	case n.integral && other.integral:
		return n.integer == other.integer
	case n.integral:
		return isExactly(other.float, n.integer)
	case other.integral:
		return isExactly(n.float, other.integer)
	}
	// JSON has no NaN; should one get here nevertheless, a value that differs from itself would be an endless update.
	return n.float == other.float || math.IsNaN(n.float) && math.IsNaN(other.float)
}

// isExactly tells whether the float is this very integer. The bounds go first: beyond them, Go's conversion is
// undefined.
func isExactly(float float64, integer int64) bool {
	return float >= math.MinInt64 && float < -math.MinInt64 && math.Trunc(float) == float && int64(float) == integer
}

// Copy returns a value that shares no mapping and no list with the given one, so that either can be modified. Values
// that are not of JSON stay as they are; nil mappings and lists become nulls.
func Copy(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if value == nil {
			return nil
		}
		copied := make(map[string]any, len(value))
		for key, inner := range value {
			copied[key] = Copy(inner)
		}
		return copied
	case []any:
		if value == nil {
			return nil
		}
		copied := make([]any, len(value))
		for i, item := range value {
			copied[i] = Copy(item)
		}
		return copied
	default:
		return value
	}
}
