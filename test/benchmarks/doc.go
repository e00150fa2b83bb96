// Package benchmarks has the figures of the benchmarks as they were recorded last, and sees to it that what is done for
// every event of every object does not allocate more than that.
//
// It stands apart because it runs benchmarks of other packages in processes of their own, without the race detector,
// whose allocations are not those of a program. It never looks at times, which are those of a machine.
//
// Its neighbours: objects has what is measured with; the bench_test.go files measure. `make bench` compares all figures
// with figures.txt, and `make bench RECORD=yes` records them again.
package benchmarks
