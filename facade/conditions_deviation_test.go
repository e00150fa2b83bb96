package kopf_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestConditionsAreOffByDefault shows that an operator writes no conditions without the setting, as Kopf. Deviation:
// D-conditions.
func TestConditionsAreOffByDefault(t *testing.T) {
	for name, given := range map[string]kopf.Settings{"by default": {}, "as Kopf": kopf.AsKopf()} {
		t.Run(name, func(t *testing.T) {
			withConditionFixture(t, nil, func(e conditionFixture) {
				given.Peering.Standalone = true
				way, _, stop := e.run(func(s houseSel) {
					s.OnCreate("do", func(_ context.Context, c *dynamicChange) error { return failTwice(c) })
				}, given)
				defer stop()
				e.createHouse(map[string]any{"size": int64(1)})
				time.Sleep(time.Hour)
				e.settle()
				if n := countStatus(way); n > 0 && name != "as Kopf" {
					t.Errorf("without conditions, the status is not written: got %d writes", n)
				}
				if d := cmp.Diff([]string{"observed 0 of 1"}, e.summary()); d != "" {
					t.Errorf("no conditions are written: -want, +got:\n%s", d)
				}
			})
		})
	}
}
