// Package progresstest makes the progress storages that test vectors describe, as Kopf's classes with their options.
//
// It is apart because the tests of several layers play such vectors. It is never linked into an operator. Neighbours:
// test/vectors/diffbasetest does the same for diff-bases; test/vectors reads the vectors.
package progresstest
