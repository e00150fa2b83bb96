package kopf

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Presence is a pattern for any value or none.
type Presence int

// The presence patterns.
const (
	// Present matches any value, also null. Kopf: PRESENT.
	Present Presence = iota + 1
	// Absent matches a missing value. Kopf: ABSENT.
	Absent
)

var errNilPattern = errors.New("the pattern is nil: use kopf.Absent for no value, or a function for a null")

// patternOf converts the argument of Value and similar options: a presence, a function or a value. For a value, equals
// is its JSON form.
func patternOf(pattern any) (matches handlers.ValuePattern, equals any, err error) {
	switch p := pattern.(type) {
	case Presence:
		matches, err := p.enginePattern()
		return matches, nil, err
	case func(value any, present bool) bool:
		if p == nil {
			return nil, nil, errNilPattern
		}
		// The value is shared, and the user's function could modify it.
		return func(value any, present bool) bool { return p(diff.DeepCopy(value), present) }, nil, nil
	}
	// Values are compared in their JSON form, so the Go type of a number does not matter.
	value, err := codec.EncodeValue(pattern)
	if err != nil {
		return nil, nil, fmt.Errorf(
			"%T is not a pattern: give kopf.Present, kopf.Absent, a func(value any, present bool) bool, or a value "+
				"that encodes to JSON: %w",
			pattern, err,
		)
	}
	// Null is ambiguous: it could mean an absent field or a field with the value null.
	if value == nil {
		return nil, nil, errNilPattern
	}
	return handlers.EqualTo(value), value, nil
}

// enginePattern returns the engine's pattern for a presence.
func (p Presence) enginePattern() (handlers.ValuePattern, error) {
	switch p {
	case Present:
		return handlers.IsPresent, nil
	case Absent:
		return handlers.IsAbsent, nil
	default:
		return nil, fmt.Errorf("kopf.Presence(%d) is not a pattern: give kopf.Present or kopf.Absent", int(p))
	}
}

// patternText returns a pattern for messages: as the user wrote it, or its kind. The JSON form is equals, if there is
// one.
func patternText(pattern, equals any) string {
	switch pattern {
	case Present:
		return "kopf.Present"
	case Absent:
		return "kopf.Absent"
	}
	if reflect.ValueOf(pattern).Kind() == reflect.Func {
		return "a function"
	}
	text, err := json.Marshal(equals)
	if err != nil {
		return fmt.Sprintf("%T", pattern) // patternOf has reported it
	}
	return string(text)
}

// textPatternOf is patternOf for labels and annotations, whose values are strings.
func textPatternOf(pattern any) (handlers.ValuePattern, error) {
	switch p := pattern.(type) {
	case func(value string, present bool) bool:
		if p == nil {
			return nil, errNilPattern
		}
		return func(value any, present bool) bool {
			text, _ := value.(string) // empty for an absent label
			return p(text, present)
		}, nil
	case nil:
		return nil, errNilPattern
	case Presence:
		return p.enginePattern()
	case string:
		return handlers.EqualTo(p), nil
	default:
		return nil, fmt.Errorf(
			"%T is not a pattern: give kopf.Present, kopf.Absent, a string, or a func(value string, present "+
				"bool) bool",
			pattern,
		)
	}
}

// WithLabel selects objects by a label: its value, [Present], [Absent], or a func(value string, present bool) bool.
// Kopf: labels={}.
func (s Selection[T]) WithLabel(key string, pattern any) Selection[T] {
	// The filter decides. The requirement can reduce the watch.
	s = s.withMetadataFilter("WithLabel", "labels", key, pattern)
	if requirement := labelRequirement(key, pattern); requirement != nil {
		s.labels = append(slices.Clip(s.labels), *requirement)
	}
	return s
}

// WithAnnotation is [Selection.WithLabel] for annotations. Kopf: annotations={}.
func (s Selection[T]) WithAnnotation(key string, pattern any) Selection[T] {
	s = s.withMetadataFilter("WithAnnotation", "annotations", key, pattern)
	var equals any
	if text, is := pattern.(string); is {
		equals = text
	}
	if requirement := fieldRequirement(diff.Path{"metadata", "annotations", key}, pattern, equals); requirement != nil {
		s.filterRequirements = append(slices.Clip(s.filterRequirements), *requirement)
	}
	return s
}

// fieldRequirement returns the requirement for a presence or a value; nil for functions, which the API server cannot
// evaluate.
func fieldRequirement(path diff.Path, pattern, equals any) *handlers.Requirement {
	switch presence, _ := pattern.(Presence); {
	case presence == Present:
		return &handlers.Requirement{Path: path, Operator: selection.Exists}
	case presence == Absent:
		return &handlers.Requirement{Path: path, Operator: selection.DoesNotExist}
	case equals == nil:
		return nil
	default:
		return &handlers.Requirement{Path: path, Operator: selection.In, Values: []any{equals}}
	}
}

// withMetadataFilter narrows the selection by a label or an annotation.
func (s Selection[T]) withMetadataFilter(method, name, key string, pattern any) Selection[T] {
	// After an error, the selection is not narrowed, but the set-up fails.
	matches, err := textPatternOf(pattern)
	if err = errors.Join(checkMetadata(name, key, pattern), err); err != nil {
		s.kind.AddError(fmt.Errorf("%s(%q): %w", method, key, err))
		return s
	}
	words := handlers.Criterion{
		Text: fmt.Sprintf("%s(%q, %s)", method, key, patternText(pattern, pattern)),
		Path: diff.Path{"metadata", name, key},
	}
	return s.withFilter(words, handlers.MatchMetadata(name, key, matches))
}

// labelRequirement returns a pattern of a label as a requirement of a selector; nil for functions and invalid patterns.
func labelRequirement(key string, pattern any) *labels.Requirement {
	// For a function, the operator lacks a value, so NewRequirement returns an error.
	operator, values := selection.Equals, []string(nil)
	switch p := pattern.(type) {
	case Presence:
		operator = map[Presence]selection.Operator{Present: selection.Exists, Absent: selection.DoesNotExist}[p]
	case string:
		values = []string{p}
	}
	requirement, err := labels.NewRequirement(key, operator, values)
	if err != nil {
		return nil
	}
	return requirement
}

// checkMetadata returns an error for an invalid key or value. The API server accepts capitals in prefixes of annotation
// keys, and any text as the value of an annotation.
func checkMetadata(name, key string, pattern any) error {
	if key == "" {
		return errors.New("the key is empty")
	}
	// The checks are those of labels, so make the exceptions of annotations pass.
	if name == "annotations" {
		key, pattern = strings.ToLower(key), nil
	}
	if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
		return fmt.Errorf("there are no %s with such a key: %s", name, strings.Join(wrong, "; "))
	}
	if text, ok := pattern.(string); ok {
		if wrong := validation.IsValidLabelValue(text); len(wrong) > 0 {
			return fmt.Errorf("there are no %s with the value %q: %s", name, text, strings.Join(wrong, "; "))
		}
	}
	return nil
}

// Names of options that other options depend on.
const (
	inFieldName = "InField"
	valueName   = "Value"
)

// typeProblems returns errors for a field that the Go type does not have, and for patterns that its values cannot
// match. Such a handler would never be called, without any other sign.
func typeProblems[T client.Object](of *codec.Codec[T], field diff.Path, opts []option) (problems []error) {
	if err := of.CheckField(field); err != nil {
		problems = append(problems, err)
	}
	for _, o := range opts {
		if o.jsonPattern == nil {
			continue
		}
		if err := of.CheckValue(field, o.jsonPattern); err != nil {
			text, _ := json.Marshal(o.jsonPattern) // it came from JSON
			problems = append(problems, fmt.Errorf("%s(%s): %w", o.name, text, err))
		}
	}
	return problems
}

// fieldProblems returns errors for options of fields that exclude each other, or lack a field.
func fieldProblems(h *handlers.Handler) []error {
	var problems []error
	if patterns := h.Value != nil || h.From != nil || h.To != nil; patterns && h.Field == nil {
		problems = append(
			problems, errors.New("Value, OldValue and NewValue need a field: add InField, or register with OnField"),
		)
	}
	if h.Value != nil && (h.From != nil || h.To != nil) {
		problems = append(problems, errors.New("Value cannot stand together with OldValue or NewValue: "+
			"it is for both sides of a change, so leave it or them out"))
	}
	return problems
}
