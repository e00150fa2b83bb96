package diffbase_test

import (
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// Example stores the essence of a handled object in its patch, and computes the difference after an edit.
func Example() {
	storage := diffbase.Annotations{Prefix: "databases.example.org"}
	handled := map[string]any{"metadata": map[string]any{"name": "db"}, "spec": map[string]any{"size": int64(1)}}
	essence, err := storage.Build(handled, nil)
	if err != nil {
		fmt.Println(err)
	}
	patch := map[string]any{}
	if err := storage.Store(patch, handled, essence); err != nil {
		fmt.Println(err)
	}
	fmt.Println(patch["metadata"].(map[string]any)["annotations"])

	edited := map[string]any{"metadata": patch["metadata"], "spec": map[string]any{"size": int64(2)}}
	before, err := storage.Fetch(edited)
	if err != nil {
		fmt.Println(err)
	}
	after, err := storage.Build(edited, nil)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(diff.Compute(before, after))
	// Output:
	// map[databases.example.org/kopf-managed:yes databases.example.org/last-handled-configuration:{"spec":{"size":1}}
	// ]
	// [change spec.size: 1 -> 2]
}
