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

// Deviation D-conditions: no essence has the conditions of the framework, whichever of them there are, nor what the
// status has observed, also where a handler of just that field has the field in the essence.
func TestConditionsInNoEssence(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		result error
		want   []string // the types that there are
	}{
		"Ready":       {"it is always there", nil, []string{"Ready"}},
		"Reconciling": {"it goes", kopf.Temporary(errors.New("later"), time.Hour), []string{"Ready", "Reconciling"}},
		"Stalled":     {"it stays", kopf.Permanent(errors.New("never")), []string{"Ready", "Stalled"}},
	} {
		t.Run(name, func(t *testing.T) {
			inConditional(t, nil, func(e conditional) {
				seen := &journal{}
				register := func(s houseSel) {
					s.Conditions()
					s.On("do", always[:2], func(context.Context, *dynamicChange) error { return c.result })
					for _, field := range []string{"status.conditions", "status.observedGeneration"} {
						s.OnField("see", field, func(_ context.Context, c *dynamicChange) error {
							seen.add(c.ID)
							return nil
						})
					}
				}
				_, _, stop := e.run(register)
				e.build(map[string]any{"size": int64(1)})
				e.edit(resize(2))
				stop()
				_, _, stop = e.run(register)
				defer stop()
				for _, held := range c.want {
					if e.moved(held) == "" {
						t.Errorf("there is no %s: %q", held, e.told())
					}
				}
				for key, value := range e.house().GetAnnotations() {
					if strings.Contains(value, "conditions") || strings.Contains(value, "observedGeneration") {
						t.Errorf("%s: annotation %s has it: %s", c.reason, key, value)
					}
				}
				seen.want(t) // nothing
			})
		})
	}
}

// Deviation D-conditions: an operator that does not ask for them, as that of Kopf does not, writes none.
func TestConditionsUnasked(t *testing.T) {
	for name, given := range map[string]kopf.Settings{"by default": {}, "as Kopf": kopf.AsKopf()} {
		t.Run(name, func(t *testing.T) {
			inConditional(t, nil, func(e conditional) {
				given.Peering.Standalone = true
				way, _, stop := e.run(func(s houseSel) {
					s.OnCreate("do", func(_ context.Context, c *dynamicChange) error { return twice(c) })
				}, given)
				defer stop()
				e.build(map[string]any{"size": int64(1)})
				time.Sleep(time.Hour)
				e.settle()
				if n := countStatus(way); n > 0 && name != "as Kopf" {
					t.Errorf("%d writes of the status", n)
				}
				if d := cmp.Diff([]string{"observed 0 of 1"}, e.told()); d != "" {
					t.Errorf("-want, +got:\n%s", d)
				}
			})
		})
	}
}
