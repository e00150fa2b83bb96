package kopf_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestConditionsInNoEssence shows that the framework's conditions and observedGeneration are not part of an
// essence, even if a handler of the field adds the field to the essence. Deviation: D-conditions.
func TestConditionsInNoEssence(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		result error
		want   []string // the expected condition types
	}{
		"Ready": {"the essence does not have the Ready condition", nil, []string{"Ready"}},
		"Reconciling": {
			"the essence does not have the Reconciling condition",
			kopf.Temporary(errors.New("later"), time.Hour), []string{"Ready", "Reconciling"}},
		"Stalled": {
			"the essence does not have the Stalled condition",
			kopf.Permanent(errors.New("never")), []string{"Ready", "Stalled"}},
	} {
		t.Run(name, func(t *testing.T) {
			withConditionFixture(t, nil, func(e conditionFixture) {
				seen := &journal{}
				register := func(s houseSel) {
					s.Conditions()
					s.On("do", nonDeleteReasons[:2], func(context.Context, *dynamicChange) error { return c.result })
					for _, field := range []string{"status.conditions", "status.observedGeneration"} {
						s.OnField("see", field, func(_ context.Context, c *dynamicChange) error {
							seen.add(c.ID)
							return nil
						})
					}
				}
				_, _, stop := e.run(register)
				e.createHouse(map[string]any{"size": int64(1)})
				e.edit(resize(2))
				stop()
				_, _, stop = e.run(register)
				defer stop()
				for _, held := range c.want {
					if e.transitionTime(held) == "" {
						t.Errorf("the condition %s is missing: %q", held, e.summary())
					}
				}
				for key, value := range e.house().GetAnnotations() {
					if strings.Contains(value, "conditions") || strings.Contains(value, "observedGeneration") {
						t.Errorf("%s: annotation %s: %s", c.reason, key, value)
					}
				}
				seen.requireLines(t) // nothing
			})
		})
	}
}

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
