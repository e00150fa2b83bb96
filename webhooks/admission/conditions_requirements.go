package admission

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"

	"k8s.io/apimachinery/pkg/selection"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// maxDepth limits the depth of a path or a value, because parsers of CEL limit nested expressions.
const maxDepth = 16

// expressRequirement expresses one requirement in parentheses. It returns false if that is not possible.
func expressRequirement(r handlers.Requirement) (text string, ok bool) {
	there, value, ok := pathExpressions(r.Path)
	if !ok {
		return "", false
	}
	// In these requirements, values of other types count as missing.
	if r.Texts {
		there += " && type(" + value + ") == string"
	}
	switch r.Operator {
	case selection.Exists:
		return "(" + there + ")", true
	case selection.DoesNotExist:
		return "!(" + there + ")", true
	case selection.In, selection.Equals, selection.DoubleEquals:
		text, ok = equalsAnyOf(value, r.Values)
		return "(" + there + " && " + text + ")", ok
	case selection.NotIn, selection.NotEquals:
		// As in label selectors, a missing value is not in the list.
		text, ok = equalsAnyOf(value, r.Values)
		return "!(" + there + " && " + text + ")", ok
	case selection.GreaterThan:
		text, ok = integerComparison(value, ">", r)
		return "(" + there + " && " + text + ")", ok
	case selection.LessThan:
		text, ok = integerComparison(value, "<", r)
		return "(" + there + " && " + text + ")", ok
	default:
		return "", false
	}
}

// pathExpressions returns an expression that reports whether the path exists, and one for its value. A value that is
// not a mapping has no keys. Both use the index operator, because has(x.y) and x.y are not possible for all keys.
func pathExpressions(path diff.Path) (there, value string, ok bool) {
	if len(path) == 0 || len(path) > maxDepth {
		return "", "", false
	}
	value = objectVariable
	var steps []string
	for _, key := range path {
		// The checks guard each access: for CEL, false && error is false.
		quoted, ok := quoteCEL(key)
		if !ok {
			return "", "", false
		}
		steps = append(steps, "type("+value+") == map", quoted+" in "+value)
		value += "[" + quoted + "]"
	}
	return strings.Join(steps, " && "), value, true
}

// equalsAnyOf returns an expression that is true if the value is one of these.
func equalsAnyOf(value string, all []any) (string, bool) {
	// In, without values, is never true.
	if len(all) == 0 {
		return "false", true
	}
	var texts []string
	for _, one := range all {
		text, ok := celLiteral(one, maxDepth)
		if !ok {
			return "", false
		}
		texts = append(texts, value+" == "+text)
	}
	if len(texts) == 1 {
		return texts[0], true
	}
	return "(" + strings.Join(texts, " || ") + ")", true
}

// integerComparison returns an expression that is true if a text is an integer on the right side of the bound. It is
// also true for integers that may not fit into 64 bits, because CEL would fail, and for texts that are too long for a
// cheap regular expression. The operator's filters decide about these.
func integerComparison(value, operator string, r handlers.Requirement) (string, bool) {
	if len(r.Values) != 1 || !r.Texts {
		return "", false
	}
	text, _ := r.Values[0].(string)
	// With at most 18 digits, a text is safe to convert. Longer ones may still fit, so the operator decides about them.
	bound, err := strconv.ParseInt(text, 10, 64)
	return fmt.Sprintf(`(size(%[1]s) > 63 || %[1]s.matches("^[+-]?[0-9]+$") && `+
		`(!%[1]s.matches("^[+-]?[0-9]{1,18}$") || int(%[1]s) %[2]s %[3]d))`, value, operator, bound), err == nil
}
