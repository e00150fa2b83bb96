package memapi

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// notes are what the answer to a request says beside its body.
type notes struct {
	warnings []string
	// failure is that of converting a stored object; the answer is an error then.
	failure *apierrors.StatusError
}

// header is a warning in the form of RFC 7234.
func header(warning string) string { return "299 - " + strconv.Quote(warning) }

// coerce brings an object that a client has sent into the form of its schema, if there is one.
func (t target) coerce(object map[string]any) error {
	t.defaultDefinition(object)
	if t.schema == nil {
		return nil
	}
	unknown, err := t.schema.Prune(object)
	if err != nil {
		return apierrors.NewBadRequest(
			fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", t.Kind, t.Version, t.Kind, err),
		)
	}
	t.schema.Default(object)
	var texts []string
	for _, path := range unknown {
		texts = append(texts, fmt.Sprintf("unknown field %q", path))
	}
	switch {
	case len(texts) == 0 || t.validation == metav1.FieldValidationIgnore:
	case t.validation == metav1.FieldValidationStrict:
		return t.tooMuch(texts)
	default:
		t.notes.warnings = append(t.notes.warnings, texts...)
	}
	return nil
}

// tooMuch refuses unknown fields.
func (t target) tooMuch(texts []string) error {
	if t.patched != nil {
		return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(
			field.NewPath("patch"), string(t.patched), "strict decoding error: "+strings.Join(texts, ", "),
		)})
	}
	return apierrors.NewBadRequest(fmt.Sprintf(
		"%s in version %q cannot be handled as a %s: strict decoding error: %s", t.Kind, t.Version, t.Kind,
		strings.Join(texts, ", "),
	))
}

// read is a stored object in the version of the request, without apiVersion and kind; it belongs to the caller.
func (t target) read(object map[string]any) map[string]any {
	object = cloned(object)
	if t.isNewEvent() {
		renameEvent(object, false)
	}
	if t.storage != nil {
		t.storage.Decode(object)
		t.storage.Default(object)
	}
	if t.converts() {
		converted, err := t.convertTo(object, t.stored, t.Version)
		if err != nil {
			t.notes.failure = internal(err)
			return object
		}
		object = converted
	}
	if t.schema != nil && t.schema != t.storage {
		t.schema.Decode(object)
	}
	return object
}

// converts reports whether a webhook converts between the version of the request and the stored one.
func (t target) converts() bool { return t.convert != nil && t.Version != t.stored }

// convertTo has an object converted by the webhook.
func (t target) convertTo(object map[string]any, from, to string) (map[string]any, error) {
	named := cloned(object)
	named["apiVersion"], named["kind"] = t.Group+"/"+from, t.Kind
	converted, err := t.convert(named, to)
	if err != nil {
		return nil, err
	}
	delete(converted, "apiVersion")
	delete(converted, "kind")
	return converted, nil
}

// store brings an object into the version of the storage.
func (t target) store(object map[string]any) error {
	if t.isNewEvent() {
		renameEvent(object, true)
	}
	if t.converts() {
		converted, err := t.convertTo(object, t.Version, t.stored)
		if err != nil {
			return internal(err)
		}
		clear(object)
		maps.Copy(object, converted)
	}
	if t.storage != nil && t.schema != t.storage {
		t.storage.Decode(object)
	}
	return nil
}

// conforms holds an object against its schema.
func (t target) conforms(object, before map[string]any) field.ErrorList {
	switch {
	case t.schema == nil:
		return nil
	case before == nil:
		return t.schema.Validate(t.named(object))
	default:
		return t.schema.ValidateUpdate(t.named(object), t.named(before), t.subresource == "status")
	}
}

// named is the object with its apiVersion and kind, sharing all the rest.
func (t target) named(object map[string]any) map[string]any {
	named := map[string]any{"apiVersion": t.groupVersion().String(), "kind": t.Kind}
	for name, value := range object {
		named[name] = value
	}
	return named
}

func (t target) invalid(problems field.ErrorList) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: t.Group, Kind: t.Kind}, t.name, problems)
}
