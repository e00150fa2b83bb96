// Not part of the public API.
//
// Package codec turns raw objects into the Go types that users' functions get, and changes of these back into changes
// of the raw objects.
//
// The framework always watches, compares and stores the raw object: fields that the Go type does not have survive every
// change. The package never calls a user's function other than the change that it is given, and never keeps or modifies
// an object that comes in.
//
// It also reads and changes single values by the texts of their paths, copies values of any type, and finds what a
// handler has changed in its copy of an object without a Patch. Package facade has one codec for each selection.
package codec
