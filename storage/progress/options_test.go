package progress_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

func (v vector) require(keys ...string) {
	v.t.Helper()
	vectors.Known(v.t, v.input, keys...)
}

// object is an object of the input; an empty one if it is absent.
func (v vector) object(key string) map[string]any {
	if object, ok := v.input[key].(map[string]any); ok {
		return object
	}
	return map[string]any{}
}

// text is a string of the input; nil for a null.
func (v vector) text(key string) *string {
	switch value := v.input[key].(type) {
	case nil:
		return nil
	case string:
		return &value
	default:
		v.t.Fatalf("%s is neither a string nor null: %v", key, value)
		return nil
	}
}

// storage is the one that the input asks for, with the options that Kopf has for it.
func (v vector) storage() (progress.Storage, error) {
	options, ok := v.input["storage"].(map[string]any)
	if !ok {
		return progress.Smart{}, nil
	}
	return v.toStorage(options)
}

func (v vector) toStorage(options map[string]any) (progress.Storage, error) {
	annotations, status := toAnnotations(options), toStatus(options)
	switch options["class"] {
	case "AnnotationsProgressStorage":
		vectors.Known(v.t, options, "class", "prefix", "verbose", "touch_key", "v1")
		return annotations, prefixError(options)
	case "StatusProgressStorage":
		vectors.Known(v.t, options, "class", "name", "field", "touch_field")
		return status, nil
	case "NoWriteStatusProgressStorage":
		vectors.Known(v.t, options, "class", "name", "field", "touch_field")
		status.NoWrite = true
		return status, nil
	case "SmartProgressStorage":
		vectors.Known(v.t, options, "class", "prefix", "verbose", "touch_key", "v1", "name", "field", "touch_field")
		return progress.Smart{Prefix: annotations.Prefix, TouchKey: annotations.TouchKey, Verbose: annotations.Verbose,
			WithoutV1: annotations.WithoutV1, Name: status.Name, Field: status.Field, TouchField: status.TouchField,
		}, prefixError(options)
	case "MultiProgressStorage":
		vectors.Known(v.t, options, "class", "storages")
		return v.toMulti(options["storages"].([]any))
	}
	v.t.Fatalf("unknown class %v: the harness must learn it", options["class"])
	return nil, nil
}

func (v vector) toMulti(storages []any) (progress.Storage, error) {
	var multi progress.Multi
	for _, options := range storages {
		storage, err := v.toStorage(options.(map[string]any))
		if err != nil {
			return nil, err
		}
		multi = append(multi, storage)
	}
	return multi, nil
}

func toAnnotations(options map[string]any) progress.Annotations {
	prefix, _ := options["prefix"].(string)
	touchKey, _ := options["touch_key"].(string)
	return progress.Annotations{Prefix: prefix, TouchKey: touchKey, Verbose: options["verbose"] == true,
		WithoutV1: options["v1"] == false}
}

func toStatus(options map[string]any) progress.Status {
	name, given := options["name"].(string)
	status := progress.Status{Name: name}
	if !given {
		name = "kopf"
	}
	status.Field, status.TouchField = toPath(options["field"], name), toPath(options["touch_field"], name)
	return status
}

// toPath reads a field as Kopf's options have it: a string with dots, in which the name is substituted, or a list.
func toPath(spec any, name string) diff.Path {
	if text, isText := spec.(string); isText {
		spec = strings.ReplaceAll(text, "{name}", name)
	}
	return vectors.Path(spec)
}

// prefixError refuses the empty prefix, as Kopf does: here, it would mean the default.
func prefixError(options map[string]any) error {
	if prefix, given := options["prefix"]; given && (prefix == "" || prefix == nil) {
		return fmt.Errorf("storage %v: %w", options["class"], errors.New("the prefix is empty"))
	}
	return nil
}
