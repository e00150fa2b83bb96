package diffbase_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
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

func (v vector) paths(key string) []diff.Path {
	specs, _ := v.input[key].([]any)
	return toPaths(specs)
}

func toPaths(specs []any) []diff.Path {
	var paths []diff.Path
	for _, spec := range specs {
		paths = append(paths, vectors.Path(spec))
	}
	return paths
}

// toPath reads a field as Kopf's options have it: a string with dots, in which the name is substituted, or a list.
func toPath(spec any, name string) diff.Path {
	if text, isText := spec.(string); isText {
		spec = strings.ReplaceAll(text, "{name}", name)
	}
	return vectors.Path(spec)
}

func (v vector) diffbase() (diffbase.Storage, error) {
	options, ok := v.input["diffbase"].(map[string]any)
	if !ok {
		return diffbase.Annotations{}, nil
	}
	return v.toDiffbase(options)
}

func (v vector) toDiffbase(options map[string]any) (diffbase.Storage, error) {
	name, ignored := text(options, "name", "kopf"), toPaths(list(options, "ignored_fields"))
	switch options["class"] {
	case "AnnotationsDiffBaseStorage":
		vectors.Known(v.t, options, "class", "prefix", "key", "ignored_fields", "v1")
		return diffbase.Annotations{Prefix: text(options, "prefix", ""), Key: text(options, "key", ""),
			IgnoredFields: ignored,
			WithoutV1:     options["v1"] == false}, prefixError(options)
	case "StatusDiffBaseStorage":
		vectors.Known(v.t, options, "class", "name", "field", "ignored_fields")
		return diffbase.Status{Name: name, Field: toPath(options["field"], name), IgnoredFields: ignored}, nil
	case "MultiDiffBaseStorage":
		vectors.Known(v.t, options, "class", "storages")
		var multi diffbase.Multi
		for _, inner := range list(options, "storages") {
			storage, err := v.toDiffbase(inner.(map[string]any))
			if err != nil {
				return nil, err
			}
			multi = append(multi, storage)
		}
		return multi, nil
	}
	v.t.Fatalf("unknown class %v: the harness must learn it", options["class"])
	return nil, nil
}

func (v vector) progress() (progress.Storage, error) {
	options, ok := v.input["progress"].(map[string]any)
	if !ok {
		return progress.Smart{}, nil
	}
	return v.toProgress(options)
}

func (v vector) toProgress(options map[string]any) (progress.Storage, error) {
	prefix, name := text(options, "prefix", ""), text(options, "name", "kopf")
	vectors.Known(
		v.t, options, "class", "prefix", "v1", "verbose", "touch_key", "name", "field", "touch_field", "storages",
	)
	switch options["class"] {
	case "AnnotationsProgressStorage":
		return progress.Annotations{Prefix: prefix}, prefixError(options)
	case "StatusProgressStorage", "NoWriteStatusProgressStorage":
		return progress.Status{Name: name, Field: toPath(options["field"], name)}, nil
	case "SmartProgressStorage":
		return progress.Smart{Prefix: prefix, Name: name, Field: toPath(options["field"], name)}, prefixError(options)
	case "MultiProgressStorage":
		var multi progress.Multi
		for _, inner := range list(options, "storages") {
			storage, err := v.toProgress(inner.(map[string]any))
			if err != nil {
				return nil, err
			}
			multi = append(multi, storage)
		}
		return multi, nil
	}
	v.t.Fatalf("unknown class %v: the harness must learn it", options["class"])
	return nil, nil
}

// prefixError refuses the empty prefix, as Kopf does: here, it would mean the default.
func prefixError(options map[string]any) error {
	if prefix, given := options["prefix"]; given && (prefix == "" || prefix == nil) {
		return fmt.Errorf("storage %v: %w", options["class"], errors.New("the prefix is empty"))
	}
	return nil
}

func text(options map[string]any, key, byDefault string) string {
	if value, ok := options[key].(string); ok {
		return value
	}
	return byDefault
}

func list(options map[string]any, key string) []any {
	value, _ := options[key].([]any)
	return value
}
