package patching_test

import (
	"fmt"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// realistic is an object of about 2 KiB.
func realistic() map[string]any {
	body := object()
	spec := body["spec"].(map[string]any)
	for i := range 20 {
		spec[fmt.Sprintf("field%d", i)] = map[string]any{
			"name": "a name of some length", "values": []any{int64(1), "two", true},
		}
	}
	return body
}

func BenchmarkMergeDiff(b *testing.B) {
	before, changed := realistic(), realistic()
	changed["spec"].(map[string]any)["field7"].(map[string]any)["name"] = "another"
	for name, after := range map[string]map[string]any{"Equal": realistic(), "OneLeaf": changed} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				patching.MergeDiff(before, after)
			}
		})
	}
}

func BenchmarkApplyTo(b *testing.B) {
	body := realistic()
	merge := patching.Patch{Merge: annotate(map[string]any{"b": int64(2)})}
	both := patching.Patch{Merge: merge.Merge, Transforms: []patching.Transform{patching.BlockDeletion("own")}}
	for name, p := range map[string]*patching.Patch{"Merge": &merge, "Transforms": &both} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.ApplyTo(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
