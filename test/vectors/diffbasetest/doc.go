// Package diffbasetest makes the diff-base storages that test vectors describe, as Kopf's classes with their options.
//
// It is apart because the tests of several layers play such vectors. It is never linked into an operator. Neighbours:
// test/vectors/progresstest does the same for progress; test/vectors reads the vectors.
package diffbasetest
