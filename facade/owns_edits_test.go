package kopf_test

import (
	"context"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestOnChildSeesEditsBeforeEnsure shows that OnChild reports an edit that precedes a call of Ensure, even if Ensure
// writes nothing and reads the edited object. The writes of Ensure are not reported.
func TestOnChildSeesEditsBeforeEnsure(t *testing.T) {
	for name, rule := range map[string]func(child any) any{
		"Applied": func(child any) any { return child }, "Once": kopf.Once,
	} {
		t.Run(name, func(t *testing.T) {
			withEnsureFixture(t, func(h ensureFixture) {
				var told childCalls
				var calls atomic.Int64
				_, stop := h.run(func(s houseSel) {
					s.Owns(&corev1.ConfigMap{})
					kopf.OnChild(s, "room", told.recordEvent)
					s.On("ensure", nonDeleteReasons, func(ctx context.Context, c *houseChange) error {
						if calls.Add(1) == 2 {
							h.api.Edit(settings, "default", "bath", func(room map[string]any) {
								room["immutable"] = false
							})
						}
						return c.Ensure(ctx, rule(rooms(c.Object)))
					})
				})
				defer stop()
				h.createHouseAndWait("bath=1")
				told.want(t, "a creation by Ensure is not reported")
				h.api.Edit(houses, "default", "home", func(house map[string]any) {
					house["spec"] = map[string]any{"rooms": []any{"bath=1"}, "other": "1"}
				})
				h.settle()
				told.want(t, "an edit of an undeclared field before Ensure is reported",
					"MODIFIED default/bath=1 of home")
				h.changeRooms("bath=2")
				told.want(t, "a change by Ensure is not reported")
			})
		})
	}
}
