package patching

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/growth"
)

// What somebody else has nested may be written on by us.
func TestDropped_Depth(t *testing.T) {
	growth.Linear(t, 500, func(depth int) func() {
		var value any = "x"
		for range depth {
			value = map[string]any{"a": value}
		}
		payload := map[string]any{"status": value}
		return func() {
			for range 20 { // the first one waits for the stack to grow
				if lost := dropped(payload, payload); len(lost) > 0 {
					t.Errorf("%d fields are lost on the way to themselves", len(lost))
				}
			}
		}
	})
}
