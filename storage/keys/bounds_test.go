package keys_test

import (
	"fmt"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/storage/keys"
	"github.com/kopf-runtime/kopf-runtime/test/growth"
)

// Anybody who may annotate an object can mark any number of prefixes.
func TestMarkedPrefixesLinear(t *testing.T) {
	growth.Linear(t, 4000, func(size int) func() {
		annotations := make(map[string]any, size)
		for i := range size {
			annotations[fmt.Sprintf("%d.example.org/kopf-managed", i)] = "yes"
		}
		return func() {
			marked := keys.MarkedPrefixes(annotations)
			for key := range annotations {
				if !marked.Cover(key) {
					t.Fatalf("%s is not covered", key)
				}
			}
		}
	})
}
