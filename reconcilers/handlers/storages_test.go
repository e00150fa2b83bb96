package handlers_test

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// diffbaseOf makes the storage of a vector; Kopf's default one if nothing is said.
func diffbaseOf(t *testing.T, spec any) diffbase.Storage {
	t.Helper()
	if spec == nil {
		return diffbase.Annotations{}
	}
	s := vectors.Known(t, spec, "class", "prefix", "key", "v1", "name", "field", "ignored_fields", "storages")
	var ignored []diff.Path
	for _, item := range s.List("ignored_fields") {
		ignored = append(ignored, pathOf(t, item))
	}
	switch s.Text("class", "") {
	case "AnnotationsDiffBaseStorage":
		return diffbase.Annotations{Prefix: s.Text("prefix", ""), Key: s.Text("key", ""), IgnoredFields: ignored, WithoutV1: s["v1"] == false}
	case "StatusDiffBaseStorage":
		return diffbase.Status{Name: s.Text("name", ""), Field: pathOf(t, s["field"]), IgnoredFields: ignored}
	case "MultiDiffBaseStorage":
		var all diffbase.Multi
		for _, item := range s.List("storages") {
			all = append(all, diffbaseOf(t, item))
		}
		return all
	default:
		t.Fatalf("the harness does not know the class of %v", spec)
		return nil
	}
}

func progressOf(t *testing.T, spec any) progress.Storage {
	t.Helper()
	if spec == nil {
		return progress.Smart{}
	}
	s := vectors.Known(t, spec, "class", "prefix", "touch_key", "verbose", "v1", "name", "field", "touch_field", "storages")
	switch s.Text("class", "") {
	case "AnnotationsProgressStorage":
		return progress.Annotations{Prefix: s.Text("prefix", ""), TouchKey: s.Text("touch_key", ""), WithoutV1: s["v1"] == false}
	case "StatusProgressStorage":
		return progress.Status{Name: s.Text("name", ""), Field: pathOf(t, s["field"]), TouchField: pathOf(t, s["touch_field"])}
	case "SmartProgressStorage":
		return progress.Smart{Prefix: s.Text("prefix", ""), TouchKey: s.Text("touch_key", ""), Name: s.Text("name", ""),
			Field: pathOf(t, s["field"]), WithoutV1: s["v1"] == false}
	case "MultiProgressStorage":
		var all progress.Multi
		for _, item := range s.List("storages") {
			all = append(all, progressOf(t, item))
		}
		return all
	default:
		t.Fatalf("the harness does not know the class of %v", spec)
		return nil
	}
}
