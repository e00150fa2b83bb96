package diff_test

import (
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

func ExampleCompute() {
	before := map[string]any{"spec": map[string]any{"owner": "ann", "size": int64(1), "note": nil}}
	after := map[string]any{"spec": map[string]any{"owner": "bob", "size": 1.0, "tags": []any{"x", "y"}}}
	for _, item := range diff.Compute(before, after) {
		fmt.Println(item)
	}
	// Output:
	// add spec.tags: ["x","y"]
	// change spec.owner: "ann" -> "bob"
}

func ExampleDiff_Reduce() {
	after := map[string]any{"spec": map[string]any{"owner": map[string]any{"name": "ann"}}}
	created := diff.Compute(nil, after)
	fmt.Println(created)
	fmt.Println(created.Reduce(diff.ParsePath("spec.owner.name"), nil, after))
	// Output:
	// [add: {"spec":{"owner":{"name":"ann"}}}]
	// [add: "ann"]
}
