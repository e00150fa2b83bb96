// Package benchmarks contains the last recorded figures of the benchmarks, and requires that the work for every event
// does not allocate more than recorded.
//
// It stands apart because it runs benchmarks of other packages in processes of their own, without the race detector,
// whose allocations are not those of a program. It never looks at times, which are those of a machine.
//
// Its neighbours: objects has the measured objects; the bench_test.go files measure. `make bench` compares all figures
// with figures.txt, and `make bench RECORD=yes` records them again.
package benchmarks
