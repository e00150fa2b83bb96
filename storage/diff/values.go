package diff

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
)

// Equal reports whether two JSON values have the same type and value, at any depth.
//
// Numbers have one type: 1 equals 1.0. A large integer equals a float only if the float is exactly that integer. Int,
// int32, float32 and [json.Number] are numbers, too. A boolean is not a number: true does not equal 1, unlike in Kopf
// (deviation D-types).
//
// Null and absence differ: {"x": null} does not equal {}, although [Compute] does not report a difference. A nil map or
// slice is null, as in JSON. Values of other Go types are compared by [reflect.DeepEqual].
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
		return ok && x.equalsNumber(y)
	}
	return reflect.DeepEqual(a, b)
}

// equalMappings reports whether two mappings have the same keys and equal values.
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

// isNull reports whether a value is null, including a nil map inside of an interface. The old state of a new object is
// such a map: without this rule, a creation would be reported as keys that were added to an empty object.
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

// number is an integer or a float. It keeps both forms apart, as neither int64 nor float64 can express all values of
// the other.
type number struct {
	integral bool
	integer  int64
	float    float64
}

// toNumber converts a value of a numeric Go type. It returns false for other types.
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

// parseNumber reads a literal as apimachinery decodes it. It returns false for a literal that exceeds the range of
// floats; such literals are compared as text.
func parseNumber(literal string) (number, bool) {
	if integer, err := strconv.ParseInt(literal, 10, 64); err == nil {
		return number{integral: true, integer: integer}, true
	}
	float, err := strconv.ParseFloat(literal, 64)
	return number{float: float}, err == nil
}

// equalsNumber compares the exact values of two numbers.
func (n number) equalsNumber(other number) bool {
	switch {
	case n.integral && other.integral:
		return n.integer == other.integer
	case n.integral:
		return isExactly(other.float, n.integer)
	case other.integral:
		return isExactly(n.float, other.integer)
	}
	// JSON does not have NaN. If one occurs nevertheless, it must equal itself, or the object would be updated
	// endlessly.
	return n.float == other.float || math.IsNaN(n.float) && math.IsNaN(other.float)
}

// isExactly reports whether the float is exactly this integer. It checks the bounds first, because Go's conversion is
// undefined outside of them.
func isExactly(float float64, integer int64) bool {
	return float >= math.MinInt64 && float < -math.MinInt64 && math.Trunc(float) == float && int64(float) == integer
}

// DeepCopy returns a deep copy: it shares no mapping and no list with the value, so either can be modified. Nil mappings
// and lists become nulls. Values of types that JSON does not have are not copied.
func DeepCopy(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if value == nil {
			return nil
		}
		copied := make(map[string]any, len(value))
		for key, inner := range value {
			copied[key] = DeepCopy(inner)
		}
		return copied
	case []any:
		if value == nil {
			return nil
		}
		copied := make([]any, len(value))
		for i, item := range value {
			copied[i] = DeepCopy(item)
		}
		return copied
	default:
		return value
	}
}
