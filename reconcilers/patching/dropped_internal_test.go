package patching

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/growth"
)

// What somebody else has nested may be written on by us.
func TestDropped_Depth(t *testing.T) {
	growth.Linear(t, 10000, func(depth int) func() {
		var value any = "x"
		for range depth {
			value = map[string]any{"a": value}
		}
		payload := map[string]any{"status": value}
		return func() {
			if lost := dropped(payload, payload); len(lost) > 0 {
				t.Errorf("%d fields are lost on the way to themselves", len(lost))
			}
		}
	})
}
