// Package vectors plays the conformance vectors, the files
// testdata/vectors/<family>.json, to the tests of any package.
//
// It is separate because all harnesses share the meaning of files, cases and
// marks, but not the use of an input. It does not contain the tested rules, and
// never imports the tested packages.
//
// Its neighbours are the vectors_*_test.go files of storage and reconcilers,
// which play the inputs and compare what comes out.
package vectors
