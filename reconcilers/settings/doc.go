// Not part of the public API.
//
// Package settings defines the settings of an operator in the form that its engines use.
//
// All engines share the one value that the operator has resolved with [Settings.WithDefaults]. The package never reads
// flags or the environment.
//
// The facade converts the public settings. Package reconcilers fills in the defaults. Package kind passes them to the
// engines.
package settings
