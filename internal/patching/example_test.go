package patching_test

import (
	"encoding/json"
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

func ExamplePatch() {
	var p patching.Patch
	p.SetIn([]string{"metadata", "annotations", "example.org/seen"}, "yes")
	if err := p.AddResult("provision", map[string]any{"host": "db-1"}); err != nil {
		fmt.Println(err)
	}
	p.Transforms = append(p.Transforms, patching.BlockDeletion("example.org/finalizer"))

	after, err := p.ApplyTo(map[string]any{"metadata": map[string]any{"name": "orders"}})
	if err != nil {
		fmt.Println(err)
	}
	text, _ := json.MarshalIndent(after, "", "  ")
	fmt.Println(string(text))
	// Output:
	// {
	//   "metadata": {
	//     "annotations": {
	//       "example.org/seen": "yes"
	//     },
	//     "finalizers": [
	//       "example.org/finalizer"
	//     ],
	//     "name": "orders"
	//   },
	//   "status": {
	//     "provision": {
	//       "host": "db-1"
	//     }
	//   }
	// }
}

func ExampleMergeDiff() {
	before := map[string]any{"spec": map[string]any{"size": int64(1), "hosts": []any{"a"}, "owner": "ann"}}
	after := map[string]any{"spec": map[string]any{"size": int64(1), "hosts": []any{"a", "b"}}}

	merge := patching.MergeDiff(before, after)
	text, _ := json.Marshal(merge)
	fmt.Println(string(text))
	// Output: {"spec":{"hosts":["a","b"],"owner":null}}
}
