// Not part of the public API.
//
// Package settings has the settings of an operator as its engines use them.
//
// It is apart because all engines read the same settings: they get the one value that the operator has resolved. It
// never reads flags or the environment.
//
// Neighbours: the facade converts the public settings; reconcilers fills in the defaults; reconcilers/kind hands them
// to the engines.
package settings
