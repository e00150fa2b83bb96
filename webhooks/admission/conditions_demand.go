package admission

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/requirements"

	"k8s.io/apimachinery/pkg/selection"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// maxDepth is how deep a path or a value may be: parsers of CEL have a limit for nested expressions.
const maxDepth = 16

// demand says one requirement, as an expression in parentheses; false means that it cannot be said.
func demand(r requirements.Requirement) (text string, ok bool) {
	there, value, ok := place(r.Path)
	if !ok {
		return "", false
	}
	if r.Texts {
		there += " && type(" + value + ") == string"
	}
	switch r.Operator {
	case selection.Exists:
		return "(" + there + ")", true
	case selection.DoesNotExist:
		return "!(" + there + ")", true
	case selection.In, selection.Equals, selection.DoubleEquals:
		text, ok = among(value, r.Values)
		return "(" + there + " && " + text + ")", ok
	case selection.NotIn, selection.NotEquals:
		text, ok = among(value, r.Values)
		return "!(" + there + " && " + text + ")", ok
	case selection.GreaterThan:
		text, ok = compared(value, ">", r)
		return "(" + there + " && " + text + ")", ok
	case selection.LessThan:
		text, ok = compared(value, "<", r)
		return "(" + there + " && " + text + ")", ok
	default:
		return "", false
	}
}

// place says that there is something at the path, and how it is got then. What is not a mapping has no keys. Neither
// has(x.y) nor x.y is for all keys, so both are by index.
func place(path diff.Path) (there, value string, ok bool) {
	if len(path) == 0 || len(path) > maxDepth {
		return "", "", false
	}
	value = it
	var steps []string
	for _, key := range path {
		quoted, ok := quote(key)
		if !ok {
			return "", "", false
		}
		steps = append(steps, "type("+value+") == map", quoted+" in "+value)
		value += "[" + quoted + "]"
	}
	return strings.Join(steps, " && "), value, true
}

// among says that the value is one of these.
func among(value string, all []any) (string, bool) {
	if len(all) == 0 {
		return "false", true
	}
	var texts []string
	for _, one := range all {
		text, ok := literal(one, maxDepth)
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

// compared says that a text is an integer on one side of the bound. What may not fit into 64 bits is left to the
// filters, as CEL would fail; and so is what is so long that it would take a regular expression long.
func compared(value, operator string, r requirements.Requirement) (string, bool) {
	if len(r.Values) != 1 || !r.Texts {
		return "", false
	}
	text, _ := r.Values[0].(string)
	bound, err := strconv.ParseInt(text, 10, 64)
	return fmt.Sprintf(`(size(%[1]s) > 63 || %[1]s.matches("^[+-]?[0-9]+$") && `+
		`(!%[1]s.matches("^[+-]?[0-9]{1,18}$") || int(%[1]s) %[2]s %[3]d))`, value, operator, bound), err == nil
}
