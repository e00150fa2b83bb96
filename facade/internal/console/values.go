package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/panics"
)

// logRepresentation returns the result of MarshalLog for a value that implements logr.Marshaler. It returns all other
// values unchanged. If MarshalLog panics, it returns a text.
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

// valueText returns the text of a value. It does not panic, even if the value's own methods do.
func valueText(value any) string {
	if text, isText := value.(string); isText {
		return text
	}
	// If a value of such a type contains itself, package fmt would recurse until the process crashes.
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

// kubernetesObject is an object of the API. Log lines only contain the names that identify it, because its content is
// long and may be confidential.
type kubernetesObject interface {
	GetName() string
	GetNamespace() string
	GetObjectKind() schema.ObjectKind
}

// encodeJSON returns a value as JSON. Strings may contain unprintable characters, which callers escape. Errors and
// values with a String method become texts. A value that cannot be encoded becomes a text, which includes the reason
// unless the value has a text of its own.
func encodeJSON(value any) (data []byte) {
	// The methods that encode values can be the user's code, too.
	err := panics.Contain(func() (err error) { data, err = marshalUnescaped(loggableValue(value)); return err })
	if err == nil {
		return data
	}
	text := valueText(value)
	// For these values, the text is only the type, so add the reason.
	if !hasText(value) && isComposed(value) {
		text += ": " + err.Error()
	}
	data, _ = marshalUnescaped(text) // texts always encode
	return data
}

// loggableValue returns what a log line contains of a value: the names of an object, the text of an error or a
// Stringer, the time in RFC 3339. It returns all other values unchanged.
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

// objectNames returns those names of an object that are known.
func objectNames(o kubernetesObject) map[string]string {
	version, kind := o.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	names := map[string]string{"apiVersion": version, "kind": kind, "namespace": o.GetNamespace(), "name": o.GetName()}
	// Unknown names are left out.
	maps.DeleteFunc(names, func(_, name string) bool { return name == "" })
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
	// The text format quotes strings only if necessary, unlike JSON.
	var text string
	if len(data) > 0 && data[0] == '"' && json.Unmarshal(data, &text) == nil {
		return quoteIfNeeded(text)
	}
	return string(escapeJSON(data))
}

// hasText reports whether a value is an error or a Stringer.
func hasText(value any) bool {
	switch value.(type) {
	case error, fmt.Stringer:
		return true
	}
	return false
}
