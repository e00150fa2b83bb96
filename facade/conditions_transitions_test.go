package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// states returns the conditions without messages, with a star if the transition time has changed since the former
// call. New times must lie between the two calls.
func (e conditionFixture) states(times map[string]string, since time.Time) string {
	e.t.Helper()
	list, _, _ := unstructured.NestedSlice(e.house().Object, "status", "conditions")
	var all []string
	for _, item := range list {
		held, _ := item.(map[string]any)
		name, moved := fmt.Sprint(held["type"]), fmt.Sprint(held["lastTransitionTime"])
		text := fmt.Sprintf("%s=%s %s", name, held["status"], held["reason"])
		if times[name] != moved {
			at, err := time.Parse(time.RFC3339, moved)
			if err != nil || at.Before(since.Truncate(time.Second)) || at.After(time.Now()) {
				e.t.Errorf("%s has the transition time %s, which is not after %s", name, moved, since)
			}
			text += "*"
		}
		times[name] = moved
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// TestConditionsOfAHandlerThatWaits shows the conditions of a handler that waits, fails permanently, waits again
// and succeeds: a condition is present while it applies, and its transition time changes only with its status.
// Restarts in between change nothing.
func TestConditionsOfAHandlerThatWaits(t *testing.T) {
	later := kopf.Temporary(errors.New("no quota"), time.Minute)
	withConditionFixture(t, nil, func(e conditionFixture) {
		var result atomic.Pointer[error]
		register := func(s houseSel) {
			s.Conditions()
			reasons := []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate}
			s.On("provision", reasons, func(context.Context, *dynamicChange) error {
				return *result.Load()
			}, kopf.Retries(5))
		}
		wait := func() { time.Sleep(time.Minute); e.settle() }
		_, _, stop := e.run(register)
		times := map[string]string{}
		for _, step := range []struct {
			when   string
			result error
			act    func()
			want   string
		}{
			{"the handler waits", later, func() { e.createHouse(map[string]any{"size": int64(1)}) },
				"Ready=False Retrying*, Reconciling=True Retrying*"},
			{"the handler still waits", later, wait, "Ready=False Retrying, Reconciling=True Retrying"},
			{"the handler waits after another error", errors.New("no answer"), wait,
				"Ready=False Retrying, Reconciling=True Retrying"},
			{"the handler has failed permanently", kopf.Permanent(errors.New("no such region")), wait,
				"Ready=False Failed, Stalled=True Failed*"},
			{"the handler waits after an edit", later, func() { e.edit(resize(2)) },
				"Ready=False Retrying, Stalled=False FailedBefore*, Reconciling=True Retrying*"},
			{"the handler has succeeded", nil, wait, "Ready=True Succeeded*"},
			{"the handler has succeeded again", nil, func() { e.edit(resize(3)) }, "Ready=True Succeeded"},
			{"the handler waits again", later, func() { e.edit(resize(4)) },
				"Ready=False Retrying*, Reconciling=True Retrying*"},
			{"the handler is out of attempts", later, func() { wait(); wait(); wait(); wait() },
				"Ready=False Failed, Stalled=True Failed*"},
			{"the handler succeeds after an edit", nil, func() { e.edit(resize(5)) }, "Ready=True Succeeded*"},
		} {
			since := time.Now()
			result.Store(&step.result)
			step.act()
			if d := cmp.Diff(step.want, e.states(times, since)); d != "" {
				t.Errorf("when %s: -want, +got:\n%s", step.when, d)
			}
			stop()
			before := e.house()
			way, _, again := e.run(register)
			stop = again
			if d := cmp.Diff([]string(nil), writes(way)); d != "" {
				t.Errorf("a restart when %s: -want, +got:\n%s", step.when, d)
			}
			if d := cmp.Diff(before, e.house()); d != "" {
				t.Errorf("a restart when %s has changed the object: -want, +got:\n%s", step.when, d)
			}
			time.Sleep(time.Second)
		}
		stop()
	})
}
