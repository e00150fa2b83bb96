package schemas

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// Validate validates a new object, which has its apiVersion and kind.
func (v *Version) Validate(object map[string]any) field.ErrorList {
	problems := v.validateStructure(object)
	problems = append(problems, v.validateEmbedded(object)...)
	problems = append(problems, listtype.ValidateListSetsAndMaps(nil, v.structural, object)...)
	return append(problems, v.validateRules(problems, object, nil)...)
}

// blockingErrorTypes lists the types of problems that prevent the evaluation of rules in the real server.
var blockingErrorTypes = []field.ErrorType{
	field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
	field.ErrorTypeTypeInvalid,
}

// validateRules evaluates the CEL rules. As in the real server, they are not evaluated if the object has problems that
// a rule does not expect.
func (v *Version) validateRules(problems field.ErrorList, object, before map[string]any) field.ErrorList {
	switch {
	case v.rules == nil:
		return nil
	case slices.ContainsFunc(problems, func(e *field.Error) bool {
		return slices.Contains(blockingErrorTypes,
			e.Type)
	}):
		return field.ErrorList{field.Invalid(nil, nil, "some validation rules were not checked because the object was "+
			"invalid; correct the existing errors to complete validation")}
	default:
		return v.rules(object, before)
	}
}

// ValidateUpdate validates an object that replaces another one, or only its status. Invalid values that did not change
// are accepted.
func (v *Version) ValidateUpdate(object, before map[string]any, status bool) field.ErrorList {
	var problems field.ErrorList
	switch {
	// A request to the status subresource cannot change anything else.
	case !status:
		problems = v.validateStructure(object)
	case v.statusValidator != nil && object["status"] != nil:
		problems = translateErrors(field.NewPath("status"), v.statusValidator.Validate(object["status"]))
	}
	// Ratcheting does not apply to lists and embedded objects below.
	problems = v.changedProblems(problems, object, before)
	if !status {
		problems = append(problems, v.validateEmbedded(object)...)
	}
	// Lists with duplicate items are accepted if the former object had any.
	if len(listtype.ValidateListSetsAndMaps(nil, v.structural, before)) == 0 {
		problems = append(problems, listtype.ValidateListSetsAndMaps(nil, v.structural, object)...)
	}
	return append(problems, v.validateRules(problems, object, before)...)
}

// validateStructure returns the problems of a complete object.
func (v *Version) validateStructure(object map[string]any) field.ErrorList {
	// Older versions of the validator accept numbers that overflow their format.
	problems := translateErrors(nil, v.objectValidator.Validate(object))
	for _, text := range formatProblems(object, v.structural, "") {
		isReported := func(other *field.Error) bool { return other.Detail == text }
		if !slices.ContainsFunc(problems, isReported) { // later versions of the validator report it themselves
			problems = append(problems, field.Invalid(nil, "", text))
		}
	}
	return problems
}

// formatProblems returns messages for integers that do not fit into the format of their fields, such as int32.
func formatProblems(value any, s *schema.Structural, path string) []string {
	var found []string
	switch value := value.(type) {
	case map[string]any:
		for name, one := range value {
			// Fields without a schema do not have a format.
			if of := schemaOf(name, s); of != nil {
				found = append(found, formatProblems(one, of, strings.TrimPrefix(path+"."+name, "."))...)
			}
		}
	case []any:
		for i, one := range value {
			if s.Items != nil {
				found = append(found, formatProblems(one, s.Items, fmt.Sprintf("%s[%d]", path, i))...)
			}
		}
	case int64, float64:
		if s.ValueValidation == nil || s.Type != "integer" || s.ValueValidation.Format == "" {
			return nil
		}
		// Only integers with a declared format are checked.
		err := validate.IsValueValidAgainstRange(value, s.Type, s.ValueValidation.Format, "Checked", path)
		if err != nil {
			found = append(found, err.Error())
		}
	}
	return found
}

// translateErrors converts the errors of a schema validation to errors of the API.
func translateErrors(at *field.Path, result *validate.Result) field.ErrorList {
	var problems field.ErrorList
	for _, err := range result.Errors {
		// Other errors do not have a field.
		var one *openapierrors.Validation
		if !errors.As(err, &one) {
			problems = append(problems, field.Invalid(at, "", err.Error()))
			continue
		}
		here := at
		if name := strings.TrimPrefix(one.Name, "."); name != "" {
			here = at.Child(name)
		}
		problems = append(problems, translateError(here, one))
	}
	return problems
}

// translateError converts one error. The type of the result decides whether rules are evaluated, so it must be that of
// the real server.
func translateError(at *field.Path, err *openapierrors.Validation) *field.Error {
	value := err.Value
	if value == nil {
		value = ""
	}
	switch err.Code() {
	case openapierrors.RequiredFailCode:
		return field.Required(at, "")
	case openapierrors.EnumFailCode:
		return field.NotSupported(at, err.Value, enumTexts(err.Values))
	case openapierrors.TooLongFailCode:
		return field.TooLong(at, "", integerLimit(err.Valid))
	case openapierrors.MaxItemsFailCode, openapierrors.TooManyPropertiesCode:
		return field.TooMany(at, integerLimit(err.Value), integerLimit(err.Valid))
	case openapierrors.InvalidTypeCode:
		return field.TypeInvalid(at, value, err.Error())
	default:
		return field.Invalid(at, value, err.Error())
	}
}

// integerLimit returns an integer limit, or -1 for a value of another type.
func integerLimit(value any) int {
	if n, ok := value.(int64); ok {
		return int(n)
	}
	return -1
}

// enumTexts returns the allowed values of an enum as text. Values that are not strings are encoded as JSON.
func enumTexts(values []any) []string {
	all := []string{}
	for _, value := range values {
		text, ok := value.(string)
		if !ok {
			data, _ := json.Marshal(value)
			text = string(data)
		}
		all = append(all, text)
	}
	return all
}

// changedProblems returns the problems with values that the update has changed. An invalid object can be updated as
// long as its invalid values do not change, as with the ratcheting validation of the real server.
func (v *Version) changedProblems(problems field.ErrorList, object, before map[string]any) field.ErrorList {
	return slices.DeleteFunc(problems, func(problem *field.Error) bool {
		steps := stepsOf(problem.Field)
		if problem.Type == field.ErrorTypeRequired && len(steps) > 0 {
			steps = steps[:len(steps)-1] // the map itself is invalid
		}
		return isUnchanged(object, before, v.structural, steps)
	})
}

// isUnchanged reports whether the value at the end of the steps, or one that contains it, is the same as before.
func isUnchanged(now, then any, s *schema.Structural, steps []string) bool {
	// A value that did not exist before cannot be unchanged.
	if then == nil {
		return false
	}
	if equality.Semantic.DeepEqual(now, then) {
		return true
	}
	if len(steps) == 0 {
		return false
	}
	switch now := now.(type) {
	case map[string]any:
		then, ok := then.(map[string]any)
		return ok && isUnchanged(now[steps[0]], then[steps[0]], schemaOf(steps[0], s), steps[1:])
	// An index in the error refers to the new list.
	case []any:
		then, ok := then.([]any)
		at, err := strconv.Atoi(steps[0])
		if !ok || err != nil || at >= len(now) || s == nil {
			return false
		}
		// Items are compared by their merge keys, because their positions may have changed.
		former, ok := formerItem(now[at], then, s)
		return ok && isUnchanged(now[at], former, s.Items, steps[1:])
	default:
		return false
	}
}

// formerItem returns the item of the former list with the same merge keys. Lists without merge keys do not have one.
func formerItem(item any, former []any, s *schema.Structural) (any, bool) {
	now, ok := item.(map[string]any)
	if !ok || s.XListType == nil || *s.XListType != "map" {
		return nil, false
	}
	// The former list can have other items that are not objects.
	for _, one := range former {
		then, ok := one.(map[string]any)
		same := func(key string) bool { return equality.Semantic.DeepEqual(now[key], then[key]) }
		if ok && !slices.ContainsFunc(s.XListMapKeys, func(key string) bool { return !same(key) }) {
			return then, true
		}
	}
	return nil, false
}

// stepsOf splits a path such as spec.parts[0].name into its steps.
func stepsOf(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}
