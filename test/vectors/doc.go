// Package vectors plays the conformance vectors, the files
// testdata/vectors/<family>.json, to the tests of any package.
//
// It stands apart because all harnesses share what a file, a case and a mark
// mean, and none of them shares what is done with an input. It never knows any
// rule that the vectors are about, and never imports what it helps to test.
//
// Its neighbours are the vectors_*_test.go files of storage and reconcilers,
// which play the inputs and compare what comes out.
package vectors
