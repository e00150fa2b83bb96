package schemas

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// changedProblems returns the problems with values that the update has changed. An invalid object can be updated as long as its
// invalid values do not change, as with the ratcheting validation of the real server.
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
