package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

// logRepresentation returns the log representation of a value that implements logr.Marshaler, and other values as they are.
func logRepresentation(value any) any {
	wanted := value
	if own, ok := value.(logr.Marshaler); ok {
		// The method is the user's code, and a panic must not end the program because of a log line.
		if err := panics.Contain(func() error { wanted = own.MarshalLog(); return nil }); err != nil {
			return valueText(value)
		}
	}
	return wanted
}

// valueText returns the text of a value. It never panics, whatever the value's own methods do.
func valueText(value any) string {
	if text, isText := value.(string); isText {
		return text
	}
	// Package fmt would follow cycles in such a value until the process ends.
	if !hasText(value) && isComposed(value) {
		return fmt.Sprintf("a %T", value)
	}
	return panics.TextOf(value)
}

// isComposed reports whether a value contains other values, and so possibly itself.
func isComposed(value any) bool {
	switch reflect.ValueOf(value).Kind() {
	case reflect.Map, reflect.Slice, reflect.Array, reflect.Struct, reflect.Pointer, reflect.Interface:
		return true
	default:
		return false
	}
}

// kubernetesObject is an object of the API. Lines contain only its names, because its content is long and may be
// confidential.
type kubernetesObject interface {
	GetName() string
	GetNamespace() string
	GetObjectKind() schema.ObjectKind
}

// encodeJSON returns a value as JSON, with any characters in its strings. Errors and values with a text of their own
// become texts. A value that cannot be encoded becomes a text with the reason.
func encodeJSON(value any) (data []byte) {
	// Encoders of values are users' code as well.
	err := panics.Contain(func() (err error) { data, err = marshalUnescaped(loggableValue(value)); return err })
	if err == nil {
		return data
	}
	text := valueText(value)
	// The text is only the type here, so the reason is added.
	if !hasText(value) && isComposed(value) {
		text += ": " + err.Error()
	}
	data, _ = marshalUnescaped(text) // texts always encode
	return data
}

// loggableValue returns the names of objects, the texts of errors, and other values as they are.
func loggableValue(value any) any {
	switch value := value.(type) {
	// A time is a Stringer too, but its text is less useful for machines.
	case time.Time:
		return value.Format(time.RFC3339Nano)
	// This case precedes Stringer: objects of the API can have a text with their whole content.
	case kubernetesObject:
		return objectNames(value)
	case error, fmt.Stringer:
		return valueText(value)
	}
	return value
}

// objectNames returns the known names of an object.
func objectNames(o kubernetesObject) map[string]string {
	version, kind := o.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	names := map[string]string{"apiVersion": version, "kind": kind, "namespace": o.GetNamespace(), "name": o.GetName()}
	// Unknown names are left out.
	for key, name := range names {
		if name == "" {
			delete(names, key)
		}
	}
	return names
}

// marshalUnescaped encodes JSON without escaping HTML characters: "2 -> 3" must stay readable.
func marshalUnescaped(value any) ([]byte, error) {
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(data.Bytes(), []byte("\n")), nil
}

// formatValue returns a value on one line.
func formatValue(value any) string {
	// Named string types are shown like strings.
	if text := reflect.ValueOf(value); text.Kind() == reflect.String && !hasText(value) {
		return quoteIfNeeded(text.String())
	}
	data := encodeJSON(value)
	// A JSON string is shown in the form of this format instead.
	var text string
	if len(data) > 0 && data[0] == '"' && json.Unmarshal(data, &text) == nil {
		return quoteIfNeeded(text)
	}
	return string(escapeJSON(data))
}

// hasText reports whether a value has a text of its own.
func hasText(value any) bool {
	switch value.(type) {
	case error, fmt.Stringer:
		return true
	}
	return false
}
