package explorer_test

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
)

// perScenario is how many courses of each scenario are played unless COURSES says otherwise: a number, or "all".
const perScenario = 30

// sampled gives as many courses as are wanted: spread over all of them, so that all points and disturbances have their
// share.
func sampled(t *testing.T, all []course) []course {
	t.Helper()
	wanted, number := os.Getenv("COURSES"), perScenario
	if wanted == "all" {
		return all
	}
	if wanted != "" {
		var err error
		if number, err = strconv.Atoi(wanted); err != nil || number < 1 {
			t.Fatalf("COURSES must be a positive number, or all: %q", wanted)
		}
	}
	some := make([]course, 0, number)
	for i := range min(number, len(all)) {
		some = append(some, all[i*len(all)/min(number, len(all))])
	}
	return some
}

func TestExplore(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scenarios[name]
			peaceful := explore(t, s, course{trouble: trouble{disturbance: nothing}})
			report(t, peaceful)
			all := courses(peaceful.reached)
			some := sampled(t, all)
			for _, c := range some {
				t.Run(c.String(), func(t *testing.T) { report(t, explore(t, s, c)) })
			}
			t.Logf("%d points, %d of %d courses", len(peaceful.reached), len(some), len(all))
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
