package explorer_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/explorer"
)

// some is how many courses of each scenario are played unless EXPLORER_COURSES says otherwise. The objects stay: their
// deletion is a matter of the scenarios.
var some = []explorer.Option{explorer.Courses(30), explorer.KeepObjects()}

func TestExplore(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			explorer.Explore(t, explored(scenarios[name]), some...)
		})
	}
}
