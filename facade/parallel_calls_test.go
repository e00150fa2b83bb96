package kopf_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestCallsFromManyGoroutines shows that a handler can call the methods of its change from its own goroutines, even
// while the object is first copied for one of them. The race detector finds violations.
func TestCallsFromManyGoroutines(t *testing.T) {
	tests := map[string]struct {
		reason string
		act    func(ctx context.Context, c *houseChange, n int) error
	}{
		"Ensure": {"concurrent calls of Ensure succeed", func(ctx context.Context, c *houseChange, _ int) error {
			return c.Ensure(ctx, rooms(c.Object)...)
		}},
		"Results": {"a result can be read while sub-handlers run", func(
			ctx context.Context, c *houseChange, n int,
		) error {
			if n == 0 {
				return c.RunSubs(ctx)
			}
			_, _ = c.RawResult("other")
			return nil
		}},
		"Subs": {"the object can be patched while sub-handlers get copies of it", func(
			ctx context.Context, c *houseChange, n int,
		) error {
			if n == 0 {
				return c.RunSubs(ctx)
			}
			c.TryPatch(func(h *kopf.Unstructured) error { return kopf.SetField(h, fmt.Sprint("spec.field", n), n) })
			return nil
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			withEnsureFixture(t, func(h ensureFixture) {
				_, stop := h.run(func(s houseSel) {
					s.OnCreate("create", func(ctx context.Context, c *houseChange) error {
						c.Sub("sub", func(context.Context, *houseChange) error { return nil })
						var calls sync.WaitGroup
						for n := range 4 {
							calls.Go(func() {
								if err := tc.act(ctx, c, n); err != nil {
									t.Errorf("%s: %v", tc.reason, err)
								}
							})
						}
						calls.Wait()
						return nil
					})
				})
				h.createHouseAndWait("bath")
				stop()
			})
		})
	}
}
