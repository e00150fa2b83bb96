package explorer_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/explorer"
)

// courseOptions is how many courses of each scenario are played unless EXPLORER_COURSES says otherwise. The objects
// stay: the scenarios delete them.
func courseOptions() []explorer.Option {
	courses := 30
	if testing.Short() {
		courses = 4
	}
	return []explorer.Option{explorer.Courses(courses), explorer.KeepObjects()}
}

func TestExplore(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			explorer.Explore(t, scenarioFactory(scenarios[name]), courseOptions()...)
		})
	}
}
