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

// maxExactInteger limits numbers to those that CEL compares exactly: it converts integers to floats to compare the two
// types.
const maxExactInteger = 1 << 53

// celLiteral returns a JSON value as a CEL literal. It returns false if the value is nested too deeply, or if a
// comparison would not be exact.
func celLiteral(value any, depth int) (string, bool) {
	if depth == 0 {
		return "", false
	}
	switch value := value.(type) {
	case nil:
		return "null", true
	case bool:
		return strconv.FormatBool(value), true
	case string:
		return quoteCEL(value)
	case int64:
		// The value in the object may be a float, so the bound applies to both types.
		return strconv.FormatInt(value, 10), -maxExactInteger < value && value < maxExactInteger
	case float64:
		// JSON has no infinities, so these are errors here.
		text, err := json.Marshal(value)
		return string(text), err == nil && math.Abs(value) < maxExactInteger
	case []any:
		return celList(value, depth-1)
	case map[string]any:
		return celMapping(value, depth-1)
	default:
		return "", false
	}
}

// celList returns a CEL list. The API server requires dyn() for elements of different types.
func celList(values []any, depth int) (string, bool) {
	var members []string
	for _, one := range values {
		text, ok := celLiteral(one, depth)
		if !ok {
			return "", false
		}
		members = append(members, "dyn("+text+")")
	}
	return "[" + strings.Join(members, ", ") + "]", true
}

// celMapping returns a CEL map. The keys are sorted, so that the entries do not change without need.
func celMapping(values map[string]any, depth int) (string, bool) {
	var members []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		quoted, isText := quoteCEL(key)
		text, ok := celLiteral(values[key], depth)
		if !isText || !ok {
			return "", false
		}
		members = append(members, quoted+": dyn("+text+")")
	}
	return "{" + strings.Join(members, ", ") + "}", true
}

// quoteCEL returns a CEL string literal that consists of ASCII characters. Go's escapes mean the same in CEL, except
// for bytes that are not valid UTF-8, which objects do not contain.
func quoteCEL(text string) (string, bool) {
	return strconv.QuoteToASCII(text), utf8.ValidString(text)
}
