// Not part of the public API.
//
// Package kind holds the parts that the engines of one kind of objects share: Kind makes attempts of handlers, and
// writes their changes.
//
// Events, changes, children and background handlers all call and write in this way. The package does not select
// handlers, and does not handle failed writes: its callers do.
//
// Neighbours: reconcilers/changes, reconcilers/events, reconcilers/owned and reconcilers/background embed a Kind;
// reconcilers/internal/controller makes it.
package kind
