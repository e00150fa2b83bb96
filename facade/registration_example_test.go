package kopf_test

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
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

// An index is looked up by one key, or walked through.
func ExampleIndex() {
	op := kopf.New("addresses.example.org")
	maps := kopf.For(op, &corev1.ConfigMap{})
	byTier := kopf.NewIndex(maps, "by-tier", func(_ context.Context, m *corev1.ConfigMap) (map[string]string, error) {
		return map[string]string{m.Labels["tier"]: m.Name}, nil
	})
	maps.OnUpdate("report", func(_ context.Context, c *kopf.Change[*corev1.ConfigMap]) error {
		peers := slices.Collect(byTier.Values(c.Object.Labels["tier"]))
		fmt.Println(peers, byTier.Count("prod"))
		for tier, count := range byTier.Counts() {
			fmt.Println(tier, count)
		}
		for tier, name := range byTier.All() {
			fmt.Println(tier, name)
		}
		return nil
	})
}
