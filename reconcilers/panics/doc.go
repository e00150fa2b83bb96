// Not part of the public API.
//
// Package panics keeps panics of users' code from ending the process: [Contain] turns a panic into an error, and an
// error whose methods panic into one whose methods do not.
//
// Only the doors use it: the places that enter users' code. test/layers/doors.go lists them. Nothing behind a door
// needs a guard. The package never logs.
package panics
