package kopf_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

type dynamicChange = kopf.Change[*kopf.Unstructured]

// expect compares the conditions of the house with the expected ones.
func (e conditionFixture) expect(when string, want ...string) {
	e.t.Helper()
	if d := cmp.Diff(want, e.summary()); d != "" {
		e.t.Errorf("%s: -want, +got:\n%s", when, d)
	}
}

func resize(size int64) func(house map[string]any) {
	return func(house map[string]any) { house["spec"] = map[string]any{"size": size} }
}

// TestConditionsFollowEveryGeneration shows that a generation for which no handler is called is observed too, with
// one write.
func TestConditionsFollowEveryGeneration(t *testing.T) {
	for name, c := range map[string]struct {
		reason   string
		register func(s kopf.Selection[*kopf.Unstructured])
	}{
		"only events": {
			"a change of an object with event handlers only is observed", func(s kopf.Selection[*kopf.Unstructured]) {
				s.Conditions()
				s.OnEvent("see", func(context.Context, *kopf.WatchEvent[*kopf.Unstructured]) error { return nil })
			}},
		"only a timer": {
			"a change of an object with timers only is observed", func(s kopf.Selection[*kopf.Unstructured]) {
				s.Conditions()
				s.Timer("tick", time.Hour, func(context.Context, *kopf.Task[*kopf.Unstructured]) error {
					return errors.New("no")
				})
			}},
	} {
		t.Run(name, func(t *testing.T) {
			withConditionFixture(t, nil, func(e conditionFixture) {
				way, _, stop := e.run(c.register)
				defer func() { stop() }()
				e.createHouse(map[string]any{"size": int64(1)})
				told := e.summary()
				writes(way)
				e.edit(resize(2))
				status := 0
				for _, one := range writes(way) {
					if one == "patch houses/status" {
						status++
					}
				}
				after := e.summary()
				if len(told) != 2 || len(after) != 2 || after[1] != "observed 2 of 2" || status != 1 {
					t.Errorf("%s: %d writes of the status led from %q to %q", c.reason, status, told, after)
				}
				moved := e.transitionTime("Ready")
				stop()
				way, _, stop = e.run(c.register)
				for _, one := range writes(way) {
					if one == "patch houses/status" {
						t.Errorf("%s: an idle restart does not write the status", c.reason)
					}
				}
				if e.transitionTime("Ready") != moved {
					t.Errorf("%s: an idle restart keeps the transition time", c.reason)
				}
			})
		})
	}
}

// TestConditionsOfDeletionsThatFail shows that an object that is kept after a failed deletion has the error in its
// conditions, also after a restart.
func TestConditionsOfDeletionsThatFail(t *testing.T) {
	withConditionFixture(t, nil, func(e conditionFixture) {
		register := func(s kopf.Selection[*kopf.Unstructured]) {
			s.Conditions()
			s.OnDelete("drop", func(_ context.Context, c *dynamicChange) error {
				if kopf.GetFieldOr(c.Object, "spec.size", int64(0)) == 2 {
					return nil
				}
				return kopf.Permanent(errors.New("the row is referenced"))
			}, kopf.HoldOnFailure())
		}
		way, _, stop := e.run(register)
		e.createHouse(map[string]any{"size": int64(1)})
		e.remove()
		failed := `@2: handler "drop" failed permanently: the row is referenced`
		e.expect("after the failure", "Ready=False Failed"+failed, "Stalled=True Failed"+failed, "observed 2 of 2")
		stop()
		writes(way)
		way, _, stop = e.run(register)
		defer stop()
		if d := cmp.Diff([]string(nil), writes(way)); d != "" {
			t.Errorf("writes at the restart: -want, +got:\n%s", d)
		}
		e.expect("after a restart", "Ready=False Failed"+failed, "Stalled=True Failed"+failed, "observed 2 of 2")
		e.edit(resize(2))
		if e.api.Object(e.houses, "default", "home") != nil {
			t.Error("an edit that lets the handler succeed removes the object")
		}
	})
}
