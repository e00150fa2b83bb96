package declared

import (
	"errors"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// errPrefix is for the empty prefix, which Kopf refuses: here, it means the default.
var errPrefix = errors.New("the prefix is empty")

// Diffbase makes the storage of the diff-base; Kopf's default one if nothing is said.
func Diffbase(t testing.TB, spec any) (diffbase.Storage, error) {
	t.Helper()
	if spec == nil {
		return diffbase.Annotations{}, nil
	}
	s := vectors.Known(t, spec, "class", "prefix", "key", "v1", "name", "field", "ignored_fields", "storages")
	var ignored []diff.Path
	for _, item := range s.List("ignored_fields") {
		ignored = append(ignored, vectors.Path(item))
	}
	switch s.Text("class", "") {
	case "AnnotationsDiffBaseStorage":
		return diffbase.Annotations{
				Prefix: s.Text("prefix", ""), Key: s.Text("key", ""),
				IgnoredFields: ignored, WithoutV1: s["v1"] == false,
			},
			prefixError(s)
	case "StatusDiffBaseStorage":
		return diffbase.Status{Name: s.Text("name", ""), Field: storageField(s, "field"), IgnoredFields: ignored}, nil
	case "MultiDiffBaseStorage":
		var all diffbase.Multi
		for _, item := range s.List("storages") {
			one, err := Diffbase(t, item)
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
		return all, nil
	default:
		t.Fatalf("the harness does not know the class of %v", spec)
		return nil, nil
	}
}

// Progress makes the storage of progress; Kopf's default one if nothing is said.
func Progress(t testing.TB, spec any) (progress.Storage, error) {
	t.Helper()
	if spec == nil {
		return progress.Smart{}, nil
	}
	s := vectors.Known(
		t, spec, "class", "prefix", "touch_key", "verbose", "v1", "name", "field", "touch_field", "storages",
	)
	annotations := progress.Annotations{Prefix: s.Text("prefix", ""), TouchKey: s.Text("touch_key", ""),
		Verbose:   s.Flag("verbose"),
		WithoutV1: s["v1"] == false}
	status := progress.Status{
		Name: s.Text("name", ""), Field: storageField(s, "field"), TouchField: storageField(s, "touch_field"),
	}
	switch s.Text("class", "") {
	case "AnnotationsProgressStorage":
		return annotations, prefixError(s)
	case "StatusProgressStorage":
		return status, nil
	case "NoWriteStatusProgressStorage":
		status.NoWrite = true
		return status, nil
	case "SmartProgressStorage":
		return progress.Smart{Prefix: annotations.Prefix, TouchKey: annotations.TouchKey, Verbose: annotations.Verbose,
			WithoutV1: annotations.WithoutV1, Name: status.Name, Field: status.Field,
			TouchField: status.TouchField}, prefixError(s)
	case "MultiProgressStorage":
		return progressOf(t, s.List("storages"))
	default:
		t.Fatalf("the harness does not know the class of %v", spec)
		return nil, nil
	}
}

func progressOf(t testing.TB, storages []any) (progress.Storage, error) {
	t.Helper()
	var all progress.Multi
	for _, item := range storages {
		one, err := Progress(t, item)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// storageField is a field of a storage: a string, in which the name is filled in, or a list of keys.
func storageField(s vectors.Fields, key string) diff.Path {
	text, isText := s[key].(string)
	if !isText {
		return vectors.Path(s[key])
	}
	return vectors.Path(strings.ReplaceAll(text, "{name}", s.Text("name", "kopf")))
}

func prefixError(s vectors.Fields) error {
	if prefix, given := s["prefix"]; given && (prefix == "" || prefix == nil) {
		return errPrefix
	}
	return nil
}
