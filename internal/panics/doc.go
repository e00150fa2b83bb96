// Not part of the public API.
//
// Package panics prevents panics of users' code from ending the process. [Contain] turns a panic into an error. It also
// replaces an error whose methods panic by one whose methods do not.
//
// Only the doors use it: the places that call users' code, which test/layers/panic_guards.go lists. Code behind a door
// does not need a guard. The package never logs.
package panics
