// Not part of the public API.
//
// Package codec converts raw objects to the Go types that users' functions get, and the users' changes back into
// changes of the raw objects. [New] returns the codec of one type; package facade has one for each selection.
//
// The framework watches, compares and stores the raw object. Therefore fields that the Go type does not have survive
// every change. The package calls no functions of users except the change it is given, and it never keeps or modifies
// its input.
//
// It also reads and writes single values by path ([ReadPath], [SetPath]), copies values of any type ([DeepCopy]), and
// detects changes that a handler makes in its copy of an object without a Patch ([Original]).
package codec
