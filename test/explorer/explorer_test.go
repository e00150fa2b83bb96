package explorer_test

import (
	"maps"
	"slices"
	"testing"
)

func TestExplore(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scenarios[name]
			peaceful := explore(t, s, course{trouble: trouble{disturbance: nothing}})
			report(t, peaceful)
			all := courses(peaceful.reached)
			for _, c := range all {
				t.Run(c.String(), func(t *testing.T) { report(t, explore(t, s, c)) })
			}
			t.Logf("%d points, %d courses", len(peaceful.reached), len(all))
		})
	}
}

func report(t *testing.T, w *world) {
	t.Helper()
	for _, v := range w.violations {
		t.Error(v)
	}
	if t.Failed() {
		for _, c := range w.ledger.calls {
			t.Logf("%s..%s %+v %v", c.started.Format(clock), c.returned.Format(clock), c.key, c.err)
		}
		t.Logf("killed at %s", w.killed.Format(clock))
	}
}

const clock = "15:04:05.000"
