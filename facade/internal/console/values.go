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

// marshalled is what a value wants to be in logs, if it says so.
func marshalled(value any) any {
	wanted := value
	if own, ok := value.(logr.Marshaler); ok {
		if err := panics.Contain(func() error { wanted = own.MarshalLog(); return nil }); err != nil {
			return valueText(value)
		}
	}
	return wanted
}

// valueText is what a value says of itself, whatever it does when it is asked.
func valueText(value any) string {
	if text, isText := value.(string); isText {
		return text
	}
	if !saysSomething(value) && composed(value) {
		return fmt.Sprintf("a %T", value)
	}
	return panics.Text(value)
}

// composed tells whether a value has others in it. Some of them have themselves in it: package fmt would run through
// these until the process ends.
func composed(value any) bool {
	switch reflect.ValueOf(value).Kind() {
	case reflect.Map, reflect.Slice, reflect.Array, reflect.Struct, reflect.Pointer, reflect.Interface:
		return true
	default:
		return false
	}
}

// kubernetesObject is an object of the API: of these, lines have the names. Others than the handlers' may be
// confidential, and all of them are long.
type kubernetesObject interface {
	GetName() string
	GetNamespace() string
	GetObjectKind() schema.ObjectKind
}

// encoded is a value as JSON, which may have any characters in its strings. Errors, and what has a text, are texts.
func encoded(value any) (data []byte) {
	err := panics.Contain(func() (err error) { data, err = marshal(loggable(value)); return err })
	if err == nil {
		return data
	}
	text := valueText(value)
	if !saysSomething(value) && composed(value) {
		text += ": " + err.Error()
	}
	data, _ = marshal(text) // a text can be encoded
	return data
}

// loggable returns the names of objects, the texts of errors, and other values as they are.
func loggable(value any) any {
	switch value := value.(type) {
	case time.Time:
		return value.Format(time.RFC3339Nano)
	case kubernetesObject:
		return objectNames(value)
	case error, fmt.Stringer:
		return valueText(value)
	}
	return value
}

func objectNames(o kubernetesObject) map[string]string {
	version, kind := o.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	names := map[string]string{"apiVersion": version, "kind": kind, "namespace": o.GetNamespace(), "name": o.GetName()}
	for key, name := range names {
		if name == "" {
			delete(names, key)
		}
	}
	return names
}

// marshal is that of JSON, but for the signs of HTML: "2 -> 3" is for people, too.
func marshal(value any) ([]byte, error) {
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(data.Bytes(), []byte("\n")), nil
}

// format writes a value so that it stays on one line.
func format(value any) string {
	if text := reflect.ValueOf(value); text.Kind() == reflect.String && !saysSomething(value) {
		return quote(text.String())
	}
	data := encoded(value)
	var text string
	if len(data) > 0 && data[0] == '"' && json.Unmarshal(data, &text) == nil {
		return quote(text)
	}
	return string(escapeJSON(data))
}

// saysSomething tells whether a value has a text of its own.
func saysSomething(value any) bool {
	switch value.(type) {
	case error, fmt.Stringer:
		return true
	}
	return false
}
