package progress_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// TestSucceeded shows that the names of succeeded sub-handlers, which are unknown to Kopf, are stored and compared.
func TestSucceeded(t *testing.T) {
	type m = map[string]any
	named := m{"status": m{"kopf": m{"progress": m{"fn": m{"purpose": "create", "succeeded": []any{"a", "b"}}}}}}
	read, err := progress.Status{}.Fetch(named, "fn")
	if err != nil || !cmp.Equal([]string{"a", "b"}, read.Succeeded) || read.Unknown != nil {
		t.Fatalf("the names are not read: %+v, %v", read, err)
	}
	for name, verbose := range map[string]bool{"Annotation": false, "VerboseAnnotation": true} {
		t.Run(name, func(t *testing.T) {
			patch, storage := m{}, progress.Annotations{Verbose: verbose, WithoutV1: true}
			if err := storage.Store(patch, m{}, "fn", *read); err != nil {
				t.Fatal(err)
			}
			if again, err := storage.Fetch(patch, "fn"); err != nil || !again.Equal(*read) {
				t.Errorf("the names are not kept: %+v, %v", again, err)
			}
			empty, without := m{}, progress.Record{Purpose: read.Purpose}
			if err := storage.Store(
				empty, m{}, "fn", without,
			); err != nil || cmp.Equal(patch, empty) || without.Equal(*read) {
				t.Errorf("a record with names must differ from one without: %v", err)
			}
		})
	}
	for name, tc := range map[string]struct {
		reason string
		body   m
		want   bool
	}{
		"Stale": {"a merge-patch removes former names", named, true},
		"Never": {"a record without names does not have the key, not even with a null", m{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			patch := m{}
			if err := (progress.Status{}).Store(patch, tc.body, "fn", progress.Record{}); err != nil {
				t.Fatal(err)
			}
			record := patch["status"].(m)["kopf"].(m)["progress"].(m)["fn"].(m)
			if value, written := record["succeeded"]; written != tc.want || value != nil {
				t.Errorf("%s, got %v", tc.reason, record)
			}
		})
	}
}
