// Not part of the public API.
//
// Package kind holds the parts that the engines of one kind of objects share. [Settings] are the settings of the
// operator in the form that the engines use; all of them share the one value that [Settings.WithDefaults] resolves. A
// [HandledKind] has these settings, makes attempts of handlers, and writes their changes.
//
// Events, changes, children and background handlers all call and write in this way. A [LoopGuard] slows down handlers
// that trigger themselves by their own writes; package changes recognizes these writes by essences, and package events
// by resource versions. The package does not select handlers, and does not handle failed writes: its callers do. It
// never reads flags or the environment.
//
// The facade converts the public settings, and package reconcilers fills in the defaults. Packages changes, events,
// owned and background embed a HandledKind, and package controller makes it.
package kind
