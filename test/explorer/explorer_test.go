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
}
