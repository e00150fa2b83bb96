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
	"sigs.k8s.io/json"
)

// warningHeader formats a warning for the Warning header of RFC 7234.
func warningHeader(warning string) string { return "299 - " + strconv.Quote(warning) }

// applySchema applies the schema to an object of a client: it removes unknown fields, and fills in defaults. Unknown
// fields are ignored, reported as warnings or refused, depending on the request.
func (t target) applySchema(object map[string]any) error {
	t.defaultDefinition(object)
	if t.schema == nil {
		return nil
	}
	unknown, err := t.schema.Prune(object)
	if err != nil {
		return t.unreadableError(err)
	}
	t.schema.Default(object)
	// Unknown fields are collected, so that the answer names all of them.
	var texts []string
	for _, path := range unknown {
		texts = append(texts, fmt.Sprintf("unknown field %q", path))
	}
	return t.reportUnknown(texts)
}

// reportUnknown refuses an object with unknown fields, adds a warning for each, or ignores them, depending on the
// request. The real server reports them differently for a patch.
func (t target) reportUnknown(texts []string) error {
	switch {
	case len(texts) == 0 || t.fieldValidation == metav1.FieldValidationIgnore:
		return nil
	case t.fieldValidation != metav1.FieldValidationStrict:
		t.notes.warnings = append(t.notes.warnings, texts...)
		return nil
	}
	text := "strict decoding error: " + strings.Join(texts, ", ")
	if t.patchResult != nil {
		return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
			field.Invalid(field.NewPath("patch"), string(t.patchResult), text),
		})
	}
	return t.unreadableError(text)
}

// unreadableError returns the error for an object that does not fit the kind.
func (t target) unreadableError(problem any) error {
	return apierrors.NewBadRequest(
		fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", t.Kind, t.Version, t.Kind, problem),
	)
}

// readStored returns a copy of a stored object in the version of the request, without apiVersion and kind. A failed
// conversion is recorded in the notes.
func (t target) readStored(object map[string]any) map[string]any {
	object = cloneObject(object)
	if t.isNewEvent() {
		renameEvent(object, false)
	}
	// Defaults that were added to the schema later also apply to objects that were stored before.
	if t.storageSchema != nil {
		t.storageSchema.Decode(object)
		t.storageSchema.Default(object)
	}
	// The webhook converts complete objects, without defaults of the requested version.
	if t.needsConversion() {
		converted, err := t.convertTo(object, t.storageVersion, t.Version)
		if err != nil {
			t.notes.failure = internalError(err)
			return object
		}
		object = converted
	}
	// Fields of the storage version that the requested one lacks are removed.
	if t.schema != nil && t.schema != t.storageSchema {
		t.schema.Decode(object)
	}
	return object
}

// needsConversion reports whether a webhook converts between the version of the request and the stored one.
func (t target) needsConversion() bool { return t.convert != nil && t.Version != t.storageVersion }

// convertTo converts an object with the conversion webhook.
func (t target) convertTo(object map[string]any, from, to string) (map[string]any, error) {
	named := cloneObject(object)
	named["apiVersion"], named["kind"] = t.Group+"/"+from, t.Kind
	converted, err := t.convert(named, to)
	if err != nil {
		return nil, err
	}
	delete(converted, "apiVersion")
	delete(converted, "kind")
	return converted, nil
}

// convertToStored converts an object in place to the form in which it is stored.
func (t target) convertToStored(object map[string]any) error {
	if t.isNewEvent() {
		renameEvent(object, true)
	}
	if t.needsConversion() {
		converted, err := t.convertTo(object, t.Version, t.storageVersion)
		if err != nil {
			return internalError(err)
		}
		clear(object)
		maps.Copy(object, converted)
	}
	if t.storageSchema != nil && t.schema != t.storageSchema {
		t.storageSchema.Decode(object)
	}
	return nil
}

// validateSchema validates an object against its schema. An update may keep invalid values that it does not change.
func (t target) validateSchema(object, before map[string]any) field.ErrorList {
	switch {
	case t.schema == nil:
		return nil
	case before == nil:
		return t.schema.Validate(t.withKind(object))
	default:
		return t.schema.ValidateUpdate(t.withKind(object), t.withKind(before), t.subresource == "status")
	}
}

// withKind returns the object with its apiVersion and kind. The copy is shallow.
func (t target) withKind(object map[string]any) map[string]any {
	named := map[string]any{"apiVersion": t.groupVersion().String(), "kind": t.Kind}
	maps.Copy(named, object)
	return named
}

// invalidError returns the error for an object with invalid fields.
func (t target) invalidError(problems field.ErrorList) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: t.Group, Kind: t.Kind}, t.name, problems)
}

// checkUnknownFields checks an object of a built-in kind against its Go type, if the request warns about or refuses
// unknown fields. Other requests skip the check, because decoding takes time.
func (t target) checkUnknownFields(data []byte) error {
	gvk := t.groupVersion().WithKind(t.Kind)
	asked := t.fieldValidation == metav1.FieldValidationStrict || t.fieldValidation == metav1.FieldValidationWarn
	// The schema of a custom resource is checked elsewhere.
	if !asked || t.schema != nil || !builtInScheme().Recognizes(gvk) {
		return nil
	}
	typed, err := builtInScheme().New(gvk)
	if err != nil {
		return internalError(err)
	}
	problems, err := json.UnmarshalStrict(data, typed)
	// A type error is a bad request, whatever the handling of unknown fields.
	if err != nil {
		return t.unreadableError(err)
	}
	var texts []string
	for _, one := range problems {
		texts = append(texts, one.Error())
	}
	return t.reportUnknown(texts)
}
