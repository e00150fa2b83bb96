package progress_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// TestAwaited shows that the keys of waits for children, which are unknown to Kopf, are stored and compared.
func TestAwaited(t *testing.T) {
	type m = map[string]any
	until := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	waiting := progress.Record{Awaited: ptr.To("ConfigMap a"), Until: &until, Delayed: &until}
	for name, storage := range map[string]progress.Storage{
		"annotations": progress.Annotations{WithoutV1: true}, "status": progress.Status{},
	} {
		patch := m{}
		if err := storage.Store(patch, m{}, "fn", waiting); err != nil {
			t.Fatal(err)
		}
		read, err := storage.Fetch(patch, "fn")
		if err != nil || !read.Equal(waiting) || !read.Clone().Equal(waiting) || read.Unknown != nil {
			t.Errorf("%s: D-awaited: the wait is not kept: %+v, %v", name, read, err)
		}
	}
	without := waiting
	without.Awaited = nil
	if without.Equal(waiting) {
		t.Error("a record with a child must differ from one without")
	}
	if without.Awaited, without.Until = waiting.Awaited, nil; without.Equal(waiting) {
		t.Error("a record with an end must differ from one without")
	}
	held := m{"status": m{"kopf": m{"progress": m{"fn": m{"awaited": "ConfigMap a"}}}}}
	patch := m{}
	if err := (progress.Status{}).Store(patch, held, "fn", progress.Record{}); err != nil {
		t.Fatal(err)
	}
	record := patch["status"].(m)["kopf"].(m)["progress"].(m)["fn"].(m)
	_, awaited := record["awaited"]
	_, ended := record["until"]
	if d := cmp.Diff([]bool{true, false}, []bool{awaited, ended}); d != "" {
		t.Errorf("a merge-patch must remove the present keys only: -want, +got:\n%s", d)
	}
}
