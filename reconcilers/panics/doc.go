// Not part of the public API.
//
// Package panics keeps what users' code does wrong from ending the process: a panic becomes an error, and an error
// whose methods panic becomes one whose methods do not.
//
// All packages of the engine that call users' functions use it. It never logs.
package panics
