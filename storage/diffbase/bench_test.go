package diffbase_test

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/test/benchmarks/objects"
)

// handledObject returns an object that the operator has handled before, with its essence.
func handledObject(b *testing.B, storage diffbase.Storage, o objects.Object) (body object, essence diffbase.Essence) {
	b.Helper()
	body = o.Tree()
	essence, err := storage.Build(body, nil)
	if err != nil {
		b.Fatalf("cannot build: %v", err)
	}
	patch := object{}
	if err := storage.Store(patch, body, essence); err != nil {
		b.Fatalf("cannot store: %v", err)
	}
	return mergePatched(body, patch), essence
}

func BenchmarkBuild(b *testing.B) {
	storage := diffbase.Annotations{}
	fields := map[string][]diff.Path{"Plain": nil, "StatusFields": pathsOf("status.phase", "status.conditions")}
	for _, o := range objects.All {
		body, _ := handledObject(b, storage, o)
		for name, extra := range fields {
			b.Run(o.Name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := storage.Build(body, extra); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkFetch(b *testing.B) {
	storage := diffbase.Annotations{}
	for _, o := range objects.All {
		body, _ := handledObject(b, storage, o)
		b.Run(o.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if essence, err := storage.Fetch(body); err != nil || essence == nil {
					b.Fatal(essence, err)
				}
			}
		})
	}
}

func BenchmarkStore(b *testing.B) {
	storage := diffbase.Annotations{}
	for _, o := range objects.All {
		body, essence := handledObject(b, storage, o)
		b.Run(o.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := storage.Store(object{}, body, essence); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
