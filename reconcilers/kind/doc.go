// Not part of the public API.
//
// Package kind has what the engines of one kind of objects share: how its handlers are called, and how their changes
// are written.
//
// It is apart because events, changes, children and background handlers call and write in the same way. It never
// decides which handler is called, or what a failed write leads to.
//
// Neighbours: reconcilers/changes, reconcilers/events, reconcilers/owned and reconcilers/background embed a Kind;
// reconcilers/internal/controller makes it.
package kind
