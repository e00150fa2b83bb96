// Package objects has the objects that benchmarks measure with: a custom resource and a Pod, of the sizes that clusters
// have them.
//
// It stands apart because figures of different packages can be compared only if they are of the same objects. It never
// imports the measured packages.
//
// Its neighbours are the bench_test.go files of storage, reconcilers and facade; test/benchmarks has their figures.
package objects
