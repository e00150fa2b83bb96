package main

import (
	"math/rand/v2"
	"slices"
)

// takeSample keeps n changes, chosen at random from those of all packages. The same seed and code give the same sample.
func takeSample(targets []*target, n int, seed uint64) {
	var all []*mutant
	for _, one := range targets {
		all = append(all, one.mutants...)
	}
	chosen := map[*mutant]bool{}
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(all)) {
		if len(chosen) == n {
			break
		}
		chosen[all[i]] = true
	}
	say("%d of %d changes are tried, with the seed %d", len(chosen), len(all), seed)
	for _, one := range targets {
		one.mutants = slices.DeleteFunc(one.mutants, func(m *mutant) bool { return !chosen[m] })
	}
}
