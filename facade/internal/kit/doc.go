// Not part of the public API.
//
// Package kit connects package facadetest to operators, so that package facade does not need exported names for tests.
//
// [Hooks] travel in the context that an operator is run with: the test kit adds them by [ContextWithHooks], and package facade
// reads them by [HooksFromContext]. [PartsOf] returns the handlers of an operator that does not run. Only package facade assigns
// it.
package kit
