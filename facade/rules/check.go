package rules

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/cel-go/cel"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Check returns the errors of the rule for objects of a Go type, given by an empty object: unknown fields, and
// operators that do not fit the types of the fields. For objects without a Go type, such as
// [unstructured.Unstructured], only the rule itself is checked.
func (r *Rule) Check(prototype client.Object) error {
	if err := r.Err(); err != nil {
		return err
	}
	typ := reflect.TypeOf(prototype)
	if typ == nil {
		return r.withRuleID(errors.New("Check: the prototype is nil: give it an empty object, such as &v1.Database{}"))
	}
	return r.checkType(typ)
}

// checkType compiles the expressions in an environment where both objects have the Go type. All errors are reported at
// once.
func (r *Rule) checkType(typ reflect.Type) error {
	if err := r.Err(); err != nil {
		return err
	}
	// The type of an object is a pointer to a struct.
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	made := &schema{}
	env, err := newEnvironment(made.declTypeOf(typ, typ.Name()))
	if err != nil {
		return r.withRuleID(err)
	}
	var found []error
	for _, one := range []struct {
		what, text string
		typ        *cel.Type
	}{{"the expression", r.expression, cel.BoolType}, {"MessageExpression", r.messageExpression, cel.StringType}} {
		if one.text == "" {
			continue
		}
		if _, issues := env.Compile(one.text); issues.Err() != nil {
			found = append(found, fmt.Errorf("of %s: %w", typ, describeIssues(one.what, issues, made.names)))
		}
	}
	if err := errors.Join(found...); err != nil {
		return r.withRuleID(err)
	}
	return nil
}

// nearestName returns the name with the smallest edit distance, for a suggestion. The distance is at most two, and at most
// half of the name's length; otherwise, it returns an empty string.
func nearestName(name string, names []string) (meant string) {
	least := min(2, len(name)/2) + 1
	for _, other := range names {
		if far := editDistance(strings.ToLower(name), strings.ToLower(other)); far < least {
			least, meant = far, other
		}
	}
	return meant
}

// editDistance returns the edit distance: the number of bytes that must be inserted, removed or replaced. It keeps only one
// row of the usual table.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	// An empty text differs from the first j bytes of b by j insertions.
	for j := range row {
		row[j] = j
	}
	for i := range a {
		// diagonal is the value of the previous row that row[j] has just overwritten.
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
