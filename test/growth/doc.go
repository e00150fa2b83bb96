// Package growth finds out how work grows with the size of what it is done on.
//
// It stands apart because what anybody may write to an object, from the object itself to the memory on it, must not
// cost more than in proportion: the tests of all packages that read such things ask the same question. It never looks
// at absolute figures, which are those of a machine.
//
// Its neighbours are the bounds_test.go files of storage and reconcilers.
package growth
