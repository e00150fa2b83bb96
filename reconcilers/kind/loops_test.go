package kind_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// TestGuard shows when calls caused by own writes count as a loop, and how they are delayed.
func TestGuard(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ids := func(all ...string) []string { return all }
	type step struct {
		after         time.Duration // since the former step
		times         int
		called, wrote []string
		want          time.Duration // the delay after the last call
		isNew         bool
	}
	for name, tc := range map[string]struct {
		reason string
		steps  []step
		waits  map[string]bool
	}{
		"BelowTheThreshold": {"nine calls in a minute are not a loop", []step{
			{0, 9, ids("a"), ids("a"), 0, false},
		}, map[string]bool{"a": false}},
		"Found": {"the tenth call in a minute is a loop", []step{
			{0, 9, ids("a", "b"), ids("a"), 0, false},
			{time.Second, 1, ids("a", "b"), ids("a"), time.Second, true},
		}, map[string]bool{"a": true, "b": false}},
		"PingPong": {"two handlers that trigger each other are one loop", []step{
			{0, 5, ids("a"), ids("a"), 0, false},
			{0, 4, ids("b"), ids("b"), 0, false},
			{0, 1, ids("b"), ids("b"), time.Second, true},
		}, map[string]bool{"a": true, "b": true}},
		"Growing": {"the delay doubles up to ten minutes", []step{
			{0, 10, ids("a"), ids("a"), time.Second, true},
			{time.Second, 1, ids("a"), ids("a"), 2 * time.Second, false},
			{2 * time.Second, 1, ids("a"), ids("a"), 4 * time.Second, false},
			{4 * time.Second, 20, ids("a"), ids("a"), 10 * time.Minute, false},
			{10 * time.Minute, 1, ids("a"), ids("a"), 10 * time.Minute, false},
		}, map[string]bool{"a": true}},
		"Slow": {"ten calls in more than a minute are not a loop", []step{
			{0, 9, ids("a"), ids("a"), 0, false},
			{61 * time.Second, 1, ids("a"), ids("a"), 0, false},
		}, map[string]bool{"a": false}},
		"Ended": {"a call without a write ends the loop of its handler", []step{
			{0, 10, ids("a"), ids("a"), time.Second, true},
			{time.Second, 1, ids("a"), nil, 0, false},
			{time.Second, 9, ids("a"), ids("a"), 0, false},
		}, map[string]bool{"a": false}},
		"OthersGoOn": {"a handler that never wrote does not end a loop of others", []step{
			{0, 10, ids("a"), ids("a"), time.Second, true},
			{0, 1, ids("b"), nil, 0, false},
		}, map[string]bool{"a": true, "b": false}},
	} {
		t.Run(name, func(t *testing.T) {
			var g kind.LoopGuard
			now := start
			for i, s := range tc.steps {
				now = now.Add(s.after)
				var delay time.Duration
				var isNew bool
				for range s.times {
					delay, isNew = g.NoteCalls(s.called, s.wrote, now)
				}
				if delay != s.want || isNew != s.isNew {
					t.Errorf("%s: step %d: got %v, new %v, want %v, %v", tc.reason, i, delay, isNew, s.want, s.isNew)
				}
			}
			waits := map[string]bool{}
			for id := range tc.waits {
				waits[id] = g.DelayedUntil(id).After(now)
			}
			if d := cmp.Diff(tc.waits, waits); d != "" {
				t.Errorf("%s: delayed handlers: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}
