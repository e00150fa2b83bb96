package kopf_test

import (
	"fmt"
	"maps"
	"slices"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// A mapping that appears as a whole is one difference; Touches looks into it.
func ExampleDiff_Touches() {
	created := kopf.Diff(diff.Compute(nil, map[string]any{"spec": map[string]any{"nodes": 3}}))
	fmt.Println(created)
	fmt.Println(created.Touches("spec.nodes"), created.Touches("spec.disks"))

	changed := kopf.Diff{{Op: diff.Change, Path: diff.Path{"spec", "nodes", "max"}, Old: 3, New: 5}}
	fmt.Println(changed.Touches("spec.nodes"), changed[0].Path.HasPrefix("spec", "nodes"))
	// Output:
	// [add: {"spec":{"nodes":3}}]
	// true false
	// true true
}

// Keys with dots are quoted in paths.
func ExampleFieldPath() {
	fmt.Println(kopf.FieldPath("metadata", "labels", "app.kubernetes.io/name"))
	// Output: metadata.labels."app.kubernetes.io/name"
}

// An index is looked up by one key, or iterated.
func ExampleIndex() {
	byTier := facadetest.NewIndex(map[string][]string{"prod": {"orders", "bills"}, "test": {"sandbox"}})

	fmt.Println(slices.Sorted(byTier.Values("prod")), byTier.Get("test"), byTier.Has("dev"))
	fmt.Println(byTier.Len(), byTier.Count("prod"), slices.Sorted(byTier.Keys()))
	fmt.Println(maps.Collect(byTier.Counts()))
	for tier, name := range byTier.All() {
		if tier == "test" {
			fmt.Println(name)
		}
	}
	// Output:
	// [bills orders] [sandbox] false
	// 2 2 [prod test]
	// map[prod:2 test:1]
	// sandbox
}
