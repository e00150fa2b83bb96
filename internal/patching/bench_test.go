package patching_test

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/test/benchmarks/objects"
)

// BenchmarkMergeDiff measures the comparison of a handler's copy with the original.
func BenchmarkMergeDiff(b *testing.B) {
	for _, o := range objects.All {
		before := o.Tree()
		for name, after := range map[string]map[string]any{"Equal": o.Tree(), "OneLeaf": o.Changed()} {
			b.Run(o.Name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if merge := patching.MergeDiff(before, after); (merge == nil) != (name == "Equal") {
						b.Fatalf("got %v", merge)
					}
				}
			})
		}
	}
}

// patches returns typical patches of a pass: notes of the framework with a handler's change, without and with a
// finalizer.
func patches() map[string]patching.Patch {
	merge := annotate(map[string]any{"phase": "Done"})
	return map[string]patching.Patch{
		"Merge":     {Merge: merge},
		"Finalizer": {Merge: merge, Transforms: []patching.Transform{patching.BlockDeletion("own")}},
	}
}

// BenchmarkApplyTo measures the computation of a patched object.
func BenchmarkApplyTo(b *testing.B) {
	for _, o := range objects.All {
		body := o.Tree()
		for name, p := range patches() {
			b.Run(o.Name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := p.ApplyTo(body); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkPatch measures the construction of a patch: notes of the framework and the result of a handler.
func BenchmarkPatch(b *testing.B) {
	result := map[string]any{"host": "orders.shop.svc", "port": int64(5432)}
	b.ReportAllocs()
	for b.Loop() {
		p := patching.Patch{}
		p.SetIn([]string{"metadata", "annotations", "example.org/create_fn"}, `{"started":"2026-01-05T09:30:00Z"}`)
		p.SetIn([]string{"metadata", "annotations", "example.org/kopf-managed"}, "yes")
		if err := p.AddResult("create_fn", result); err != nil {
			b.Fatal(err)
		}
		if sent := p.Clone(); sent.IsEmpty() {
			b.Fatal("nothing is sent")
		}
	}
}

// BenchmarkAdmissionOps measures the response of a mutating webhook.
func BenchmarkAdmissionOps(b *testing.B) {
	for _, o := range objects.All {
		body := o.Tree()
		for name, p := range patches() {
			b.Run(o.Name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if ops, err := patching.AdmissionOps(body, p); err != nil || len(ops) == 0 {
						b.Fatal(ops, err)
					}
				}
			})
		}
	}
}
