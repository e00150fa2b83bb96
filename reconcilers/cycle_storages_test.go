package reconcilers_test

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

func diffbaseOf(t *testing.T, spec any) diffbase.Storage {
	if spec == nil {
		return diffbase.Annotations{}
	}
	s := vectors.Known(t, spec, "class", "prefix", "key", "name")
	switch s.Text("class", "") {
	case "AnnotationsDiffBaseStorage":
		return diffbase.Annotations{Prefix: s.Text("prefix", ""), Key: s.Text("key", "")}
	case "StatusDiffBaseStorage":
		return diffbase.Status{Name: s.Text("name", "")}
	default:
		t.Fatalf("the harness does not know the storage %v", spec)
		return nil
	}
}

func progressOf(t *testing.T, spec any) progress.Storage {
	if spec == nil {
		return progress.Smart{}
	}
	s := vectors.Known(t, spec, "class", "prefix", "name")
	switch s.Text("class", "") {
	case "AnnotationsProgressStorage":
		return progress.Annotations{Prefix: s.Text("prefix", "")}
	case "StatusProgressStorage":
		return progress.Status{Name: s.Text("name", "")}
	default:
		t.Fatalf("the harness does not know the storage %v", spec)
		return nil
	}
}
