package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTakeSample shows that a sample has the wanted size, is the same for the same seed, and comes from all packages.
func TestTakeSample(t *testing.T) {
	t.Parallel()
	sampled := func(n int, seed uint64) (ids [][]int) {
		targets := []*target{{}, {}}
		for id := range 200 {
			targets[id%2].mutants = append(targets[id%2].mutants, &mutant{id: id})
		}
		takeSample(targets, n, seed)
		for _, one := range targets {
			var kept []int
			for _, change := range one.mutants {
				kept = append(kept, change.id)
			}
			ids = append(ids, kept)
		}
		return ids
	}
	size := func(ids [][]int) int { return len(ids[0]) + len(ids[1]) }
	first := sampled(50, 1)
	if size(first) != 50 || len(first[0]) == 0 || len(first[1]) == 0 {
		t.Errorf("want 50 changes of both packages: got %v", first)
	}
	if diff := cmp.Diff(first, sampled(50, 1)); diff != "" {
		t.Errorf("the same seed must give the same sample (-first, +second):\n%s", diff)
	}
	if cmp.Equal(first, sampled(50, 2)) {
		t.Error("another seed must give another sample")
	}
	if got := size(sampled(1000, 1)); got != 200 {
		t.Errorf("a sample of more changes than there are must have all: got %d", got)
	}
}
