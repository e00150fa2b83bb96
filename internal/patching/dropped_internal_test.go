package patching

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/growth"
)

// TestDropped_Depth shows that the cost is linear in the depth of the payload, which other clients may have nested.
func TestDropped_Depth(t *testing.T) {
	growth.Linear(t, 500, func(depth int) func() {
		var value any = "x"
		for range depth {
			value = map[string]any{"a": value}
		}
		payload := map[string]any{"status": value}
		return func() {
			for range 20 { // the first round waits for the stack to grow
				if lost := droppedFields(payload, payload); len(lost) > 0 {
					t.Errorf("%d fields are reported as dropped although nothing changed", len(lost))
				}
			}
		}
	})
}
