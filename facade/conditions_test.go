package kopf_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestConditionsFollowTheHandlers shows that conditions have the message of each attempt, at one status write per
// new outcome, and that an idle restart writes nothing.
func TestConditionsFollowTheHandlers(t *testing.T) {
	withConditionFixture(t, nil, func(e conditionFixture) {
		results := []error{
			kopf.Temporary(errors.New("the quota is used up"), time.Minute), errors.New("no answer"), nil,
		}
		register := func(s kopf.Selection[*kopf.Unstructured]) {
			s.Conditions()
			s.OnCreate("provision", func(_ context.Context, c *dynamicChange) error { return results[c.Retry] })
			s.OnCreate("announce", func(context.Context, *dynamicChange) error { return nil })
		}
		way, _, stop := e.run(register)
		e.createHouse(map[string]any{"size": int64(1)})
		want := []string{
			`Ready=False Retrying@1: handler "provision", attempt 1: the quota is used up`,
			`Reconciling=True Retrying@1: handler "provision", attempt 1: the quota is used up`,
			"observed 1 of 1",
		}
		if d := cmp.Diff(want, e.summary()); d != "" {
			t.Errorf("after the first attempt: -want, +got:\n%s", d)
		}
		if d := cmp.Diff([]string{"patch houses/status", "patch houses"}, writes(way)); d != "" {
			t.Errorf("writes: -want, +got:\n%s", d)
		}
		first := e.transitionTime("Ready")
		time.Sleep(time.Minute)
		e.settle()
		want = []string{
			`Ready=False Retrying@1: handler "provision", attempt 2: no answer`,
			`Reconciling=True Retrying@1: handler "provision", attempt 2: no answer`,
			"observed 1 of 1",
		}
		if d := cmp.Diff(want, e.summary()); d != "" {
			t.Errorf("after the second attempt: -want, +got:\n%s", d)
		}
		if e.transitionTime("Ready") != first {
			t.Errorf("the transition time of Ready is kept without a new status: got %s, then %s",
				first, e.transitionTime("Ready"))
		}
		stop()

		writes(way)
		way, _, stop = e.run(register)
		if d := cmp.Diff([]string(nil), writes(way)); d != "" {
			t.Errorf("at a restart between two attempts: -want, +got:\n%s", d)
		}
		time.Sleep(time.Minute)
		e.settle()
		want = []string{"Ready=True Succeeded@1: all handlers have succeeded", "observed 1 of 1"}
		if d := cmp.Diff(want, e.summary()); d != "" {
			t.Errorf("after the success: -want, +got:\n%s", d)
		}
		if d := cmp.Diff([]string{"patch houses/status", "patch houses"}, writes(way)); d != "" {
			t.Errorf("writes at the end: -want, +got:\n%s", d)
		}
		if e.transitionTime("Ready") == first {
			t.Error("the transition time of Ready changes with its status")
		}
		stop()

		way, _, stop = e.run(register)
		defer stop()
		if d := cmp.Diff([]string(nil), writes(way)); d != "" {
			t.Errorf("at an idle restart: -want, +got:\n%s", d)
		}
	})
}
