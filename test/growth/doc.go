// Package growth measures how work grows with the size of its input.
//
// It stands apart because the cost of data that clients write to an object, from the object itself to the stored
// progress, must grow at most in proportion: the tests of all packages that read such things ask the same question. It
// never looks at absolute figures, which are those of a machine.
//
// Its neighbours are the bounds_test.go files of storage and reconcilers.
package growth
