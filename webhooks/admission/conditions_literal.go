package admission

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// exact is the bound of numbers that CEL compares exactly: it makes floats of integers to compare the two.
const exact = 1 << 53

// literal is a JSON value in CEL, to be compared with; false means that there is none, or that the comparison would not
// be exact.
func literal(value any, depth int) (string, bool) {
	if depth == 0 {
		return "", false
	}
	switch value := value.(type) {
	case nil:
		return "null", true
	case bool:
		return strconv.FormatBool(value), true
	case string:
		return quote(value)
	case int64:
		return strconv.FormatInt(value, 10), -exact < value && value < exact
	case float64:
		text, err := json.Marshal(value)
		return string(text), err == nil && math.Abs(value) < exact
	case []any:
		return list(value, depth-1)
	case map[string]any:
		return mapping(value, depth-1)
	default:
		return "", false
	}
}

// list has members of any types, which API servers take only where they are told that any are meant.
func list(values []any, depth int) (string, bool) {
	var members []string
	for _, one := range values {
		text, ok := literal(one, depth)
		if !ok {
			return "", false
		}
		members = append(members, "dyn("+text+")")
	}
	return "[" + strings.Join(members, ", ") + "]", true
}

func mapping(values map[string]any, depth int) (string, bool) {
	var members []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		quoted, isText := quote(key)
		text, ok := literal(values[key], depth)
		if !isText || !ok {
			return "", false
		}
		members = append(members, quoted+": dyn("+text+")")
	}
	return "{" + strings.Join(members, ", ") + "}", true
}

// quote is a text in CEL, in ASCII alone. The escapes of Go that it needs mean the same in CEL, but for bytes of no
// character, which are in no object.
func quote(text string) (string, bool) {
	return strconv.QuoteToASCII(text), utf8.ValidString(text)
}
