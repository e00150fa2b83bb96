package kopf

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// InField restricts a handler to objects that have the field; with [Value], to certain values of it. For updates, it is
// enough that they had it before. For OnUpdate, the field must have changed. The path is as for OnField, and becomes a
// part of the id: "id/spec.field". Kopf: field=.
func InField(path string) filterOption {
	parsed, err := codec.ParsePath(path)
	return optionOf[filterOption](inField, named("InField("+strconv.Quote(path)+")", err), func(h *handlers.Handler) {
		h.Field = parsed
	})
}

// Value demands that the field of the handler has a value by the pattern: [Present], [Absent], a function func(value
// any, present bool) bool, or a value that encodes to the same JSON. Values are as in JSON: int64, float64, string,
// bool, []any, map[string]any, nil. It needs [InField], or OnField. Kopf: value=.
//
// Creations, deletions and resumes look at the present object alone. For updates, it is enough that the value was so
// before the change. A function that panics fails this handler, and no other one.
func Value(pattern any) filterOption {
	return patternOption[filterOption](ofValue, pattern, func(h *handlers.Handler, p handlers.Pattern, text string) {
		h.Value, h.Words.Value = p, text
	})
}

// OldValue demands that the field of the handler had a value by the pattern when the object was handled last: see
// [Value]. Kopf: old=.
func OldValue(pattern any) updateOption {
	return patternOption[updateOption](
		"OldValue", pattern,
		func(h *handlers.Handler, p handlers.Pattern, text string) { h.From, h.Words.From = p, text },
	)
}

// NewValue demands that the field of the handler has a value by the pattern now: see [Value]. Kopf: new=.
func NewValue(pattern any) updateOption {
	return patternOption[updateOption](
		"NewValue", pattern,
		func(h *handlers.Handler, p handlers.Pattern, text string) { h.To, h.Words.To = p, text },
	)
}

// patternOption demands something of the value of the handler's field.
func patternOption[O Option](
	name string, pattern any, set func(h *handlers.Handler, p handlers.Pattern, text string),
) O {
	matches, equals, err := patternOf(pattern)
	return inFamily[O](option{
		name: name, err: named(name, err), given: pattern, equals: equals,
		set: func(h *handlers.Handler) { set(h, matches, patternText(pattern, equals)) },
	})
}

func named(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

// OnField registers a handler for objects in which one field has changed, be it that they are created, updated, or
// deleted since: for updates alone, register OnUpdate with [InField]. Kopf: on.field.
//
// It is called for what the field is like now. A handler that applies it compares with what there is, such as the
// status, rather than with the old value: an edit may be taken back before the handler has seen it.
//
// The path is keys with dots between them, from the root of the object: "spec.size", "status.phase". A key with dots of
// its own stands in double quotes: `metadata.labels."app.kubernetes.io/name"`, see [FieldPath]. A path that T does not
// have is a mistake. An object in which it leads through something else than a mapping does not have the field, and the
// log says so once. The handler's full id, under which its progress and result are kept, is the id with the field:
// "id/spec.size".
//
// c.Diff is reduced to the field; [FieldChange] gives its two values. The object and Old are whole.
func (s Selection[T]) OnField(id, path string, fn ChangeFunc[T], opts ...updateOption) {
	field, err := codec.ParsePath(path)
	var problems []error
	if err != nil {
		problems = append(problems, err)
	}
	registerField(s, function[T]{"OnField", id, fn}, field, asOptions(opts), problems, fieldChange)
}

// FieldPath makes a path, as OnField and others take it, out of keys: those with dots of their own are put into quotes.
// FieldPath("metadata", "labels", "app.kubernetes.io/name") is `metadata.labels."app.kubernetes.io/name"`.
func FieldPath(keys ...string) string { return codec.FormatPath(keys) }

// The names of options.
const (
	inField = "InField"
	ofValue = "Value"
)

// Field gives the old and the new value of the handler's field, as they are in what was handled last and in the object:
// nil where there is none. The type is spelled, the rest is inferred: kopf.FieldChange[int](c). A value that does not fit
// into V is nil, and fails the handler when it has returned, as do handlers without a field.
func FieldChange[V any, T client.Object](c *Change[T]) (before, after *V) {
	c.do(func() (err error) {
		h := c.call.Handler
		if h == nil || h.Field == nil {
			return errors.New("kopf.FieldChange: the handler has no field: register it with OnField, or with InField")
		}
		if before, err = valueAt[V](c.call.Cause.Old, h.Field); err == nil {
			after, err = valueAt[V](c.call.Cause.New, h.Field)
		}
		if err != nil {
			return fmt.Errorf(
				"reading field %s of object %s for handler %q: %w", codec.FormatPath(h.Field), c.name(), c.ID, err,
			)
		}
		return nil
	})
	return before, after
}

func valueAt[V any](essence map[string]any, field diff.Path) (*V, error) {
	value, present := diff.Resolve(essence, field)
	if !present || value == nil {
		return nil, nil
	}
	var into V
	if err := codec.DecodeValue(value, &into); err != nil {
		return nil, err
	}
	return &into, nil
}

// typeProblems are those of a field that the Go type does not have, and of values that the field never has.
func typeProblems[T client.Object](of *codec.Codec[T], field diff.Path, opts []option) (problems []error) {
	if err := of.CheckField(field); err != nil {
		problems = append(problems, err)
	}
	for _, o := range opts {
		if o.equals == nil {
			continue
		}
		if err := of.CheckValue(field, o.equals); err != nil {
			text, _ := json.Marshal(o.equals) // it came from JSON
			problems = append(problems, fmt.Errorf("%s(%s): %w", o.name, text, err))
		}
	}
	return problems
}

// fieldProblems are those of the options that have to do with fields, and with one another.
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
