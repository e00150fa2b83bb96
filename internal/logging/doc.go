// Not part of the public API.
//
// Package logging defines the keys that name an object in the engine's log lines, and adds warnings to logr.
//
// [OfKind], [OfObject] and [OfHandler] return loggers with these keys. All packages use them, so one key finds all
// lines of an object. [WithDeferredValues] defers the formatting of values to the first line. [Warn] logs at a level
// that logr does not have. The Manual constants are the addresses of documentation pages that messages link to.
//
// The manager's logger decides where lines go and how they look.
package logging
