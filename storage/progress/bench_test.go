package progress_test

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// newRealisticObject returns an object of about 2 KiB in JSON with one handler in progress.
func newRealisticObject(b *testing.B, storage progress.Storage, record progress.Record) object {
	b.Helper()
	patch := object{}
	if err := storage.Store(patch, object{}, "create_fn", record); err != nil {
		b.Fatalf("cannot store: %v", err)
	}
	annotations := patch["metadata"].(object)["annotations"].(object)
	annotations["example.org/note"] = "by hand"
	annotations["kopf.zalando.org/last-handled-configuration"] = strings.Repeat("x", 1<<10)
	return object{
		"metadata": object{"name": "app", "labels": object{"tier": "prod"}, "annotations": annotations},
		"spec":     object{"replicas": int64(3), "text": strings.Repeat("x", 1<<9)},
		"status":   object{"phase": "Ready"},
	}
}

func runningRecord() progress.Record {
	return progress.Record{
		Started: &testTime, Delayed: &testTime, Purpose: ptr.To("create"), Retries: ptr.To(int64(1)),
		Success: ptr.To(false),
		Failure: ptr.To(false), Message: ptr.To("the cloud is not ready yet"),
	}
}

func BenchmarkFetch(b *testing.B) {
	body := newRealisticObject(b, progress.Smart{}, runningRecord())
	for name, id := range map[string]string{"present": "create_fn", "absent": "update_fn"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := (progress.Smart{}).Fetch(body, id); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkClear(b *testing.B) {
	body := newRealisticObject(b, progress.Smart{}, runningRecord())
	for name, essence := range map[string]object{"own": body, "none": progress.Smart{}.Clear(body)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				progress.Smart{}.Clear(essence)
			}
		})
	}
}

func BenchmarkStore(b *testing.B) {
	record := runningRecord()
	body := newRealisticObject(b, progress.Smart{}, record)
	b.ReportAllocs()
	for b.Loop() {
		if err := (progress.Smart{}).Store(object{}, body, "create_fn", record); err != nil {
			b.Fatal(err)
		}
	}
}
