// Not part of the public API.
//
// Package kit has what package facadetest needs of an operator and users do not, so that package facade has no public
// names for it.
//
// [Hooks] travel in the context that an operator is run with: the test kit puts them in by [Into], the facade reads
// them by [From]. [PartsOf] returns the handlers of an operator that is never run; the facade sets it, because it
// cannot import the test kit.
package kit
