package kopf

import (
	"errors"
	"fmt"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// InField calls a handler only for objects that have, or had before the update, the field. For OnUpdate, it must have
// changed. Kopf: field=.
func InField(path string) filterOption {
	parsed, err := codec.ParsePath(path)
	return optionOf[filterOption](inFieldName, withOptionName("InField("+strconv.Quote(path)+")", err),
		func(h *handlers.Handler) {
			h.Field = parsed
		})
}

// Value requires that the field of [InField] matches a pattern: [Present], [Absent], a value that is equal in JSON, or
// a func(value any, present bool) bool. For updates, either value can match. Kopf: value=.
func Value(pattern any) filterOption {
	return patternOption[filterOption](valueName, pattern,
		func(h *handlers.Handler, p handlers.ValuePattern, text string) {
			h.Value, h.FilterDescriptions.Value = p, text
		})
}

// OldValue is [Value] for the last-handled value alone. Kopf: old=.
func OldValue(pattern any) updateOption {
	return patternOption[updateOption](
		"OldValue", pattern,
		func(h *handlers.Handler, p handlers.ValuePattern, text string) {
			h.From, h.FilterDescriptions.From = p, text
		},
	)
}

// NewValue is [Value] for the current value alone. Kopf: new=.
func NewValue(pattern any) updateOption {
	return patternOption[updateOption](
		"NewValue", pattern,
		func(h *handlers.Handler, p handlers.ValuePattern, text string) {
			h.To, h.FilterDescriptions.To = p, text
		},
	)
}

// patternOption is an option with a pattern for the value of the handler's field.
func patternOption[O Option](
	name string, pattern any, set func(h *handlers.Handler, p handlers.ValuePattern, text string),
) O {
	matches, equals, err := patternOf(pattern)
	return withFamily[O](option{
		name: name, err: withOptionName(name, err), userPattern: pattern, jsonPattern: equals,
		set: func(h *handlers.Handler) { set(h, matches, patternText(pattern, equals)) },
	})
}

// withOptionName adds the name of an option to its error.
func withOptionName(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

// OnField registers a handler for changes of one field, also by a creation or deletion; for updates alone, use OnUpdate
// with [InField]. Kopf: on.field.
//
// The path is keys with dots: "spec.size", `metadata.labels."app.kubernetes.io/name"`. The full id is "id/spec.size".
// c.Diff has only the field; [FieldChange] returns its values. See docs/selecting.md.
func (s Selection[T]) OnField(id, path string, fn ChangeFunc[T], opts ...updateOption) {
	field, err := codec.ParsePath(path)
	var problems []error
	if err != nil {
		problems = append(problems, err)
	}
	registerWithField(s, changeRegistration[T]{"OnField", id, fn}, field, asOptions(opts), problems, fieldChange)
}

// FieldPath joins keys to a path, and quotes those with dots.
func FieldPath(keys ...string) string { return codec.FormatPath(keys) }

// FieldChange returns the last-handled and the current value of the handler's field; nil is missing or null. V is
// explicit: kopf.FieldChange[int](c). A value of another type fails the handler.
func FieldChange[V any, T client.Object](c *Change[T]) (before, after *V) {
	c.runLocked(func() (err error) {
		h := c.call.Handler
		if h == nil || h.Field == nil {
			return errors.New("kopf.FieldChange: the handler has no field: register it with OnField, or with InField")
		}
		if before, err = decodeValueAt[V](c.call.Cause.Old, h.Field); err == nil {
			after, err = decodeValueAt[V](c.call.Cause.New, h.Field)
		}
		if err != nil {
			return fmt.Errorf(
				"reading field %s of object %s for handler %q: %w", codec.FormatPath(h.Field), c.objectName(), c.ID,
				err,
			)
		}
		return nil
	})
	return before, after
}

// decodeValueAt decodes the value at a path; nil if it is missing or null.
func decodeValueAt[V any](essence map[string]any, field diff.Path) (*V, error) {
	value, present := diff.ResolvePath(essence, field)
	if !present || value == nil {
		return nil, nil
	}
	var into V
	if err := codec.DecodeValue(value, &into); err != nil {
		return nil, err
	}
	return &into, nil
}
