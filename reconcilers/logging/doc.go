// Not part of the public API.
//
// Package logging is what all lines of the engine's log have in common: how they name an object, and that some of them
// are warnings, which logr alone does not have.
//
// It stands apart because lines of one object can be followed by one key only if all packages use the same. It never
// decides who gets a line, or what it looks like: that is for the logger of the manager.
package logging
