package diff_test

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/benchmarks/objects"
)

func BenchmarkCompute(b *testing.B) {
	for _, o := range objects.All {
		before := o.Tree()
		for name, bench := range map[string]struct {
			after any
			items int
		}{
			"Equal": {after: o.Tree()}, "OneLeaf": {after: o.Changed(), items: 1},
		} {
			b.Run(o.Name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if got := diff.Compute(before, bench.after); len(got) != bench.items {
						b.Fatalf("got %d items, want %d", len(got), bench.items)
					}
				}
			})
		}
	}
}

// BenchmarkReduce measures the reduction to one field, for a change of that field and of another one.
func BenchmarkReduce(b *testing.B) {
	for _, o := range objects.All {
		before, after := o.Tree(), o.Changed()
		changed := diff.Compute(before, after)
		for name, bench := range map[string]struct {
			field diff.Path
			items int
		}{
			"Changed": {field: diff.Path{"spec"}, items: 1}, "Elsewhere": {field: diff.Path{"metadata", "labels"}},
		} {
			b.Run(o.Name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if got := changed.Reduce(bench.field, before, after); len(got) != bench.items {
						b.Fatalf("got %d items, want %d", len(got), bench.items)
					}
				}
			})
		}
	}
}

// TestComputeEqualAllocatesNothing shows that comparing equal objects does not allocate. An operator compares all
// objects of a cluster at every resync.
func TestComputeEqualAllocatesNothing(t *testing.T) {
	for _, o := range objects.All {
		before, after := o.Tree(), o.Tree()
		if got := testing.AllocsPerRun(100, func() { diff.Compute(before, after) }); got != 0 {
			t.Errorf("%s: comparing equal objects made %v allocations, want none", o.Name, got)
		}
		if got := testing.AllocsPerRun(100, func() { diff.Equal(before, after) }); got != 0 {
			t.Errorf("%s: Equal of equal objects made %v allocations, want none", o.Name, got)
		}
	}
}
