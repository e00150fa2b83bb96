// Package reconcilers is the engine: one controller per kind, inside a standard manager.
//
// It is apart from the facade so that it has neither generics nor user-facing verbs: plain handlers go in. Every kind
// has its own cache, which starts and stops with it, so that a kind that fails ends alone and the manager's cache is
// never touched. It never decides what a change means: reconcilers/changes does, one object and one pass at a time.
//
// Neighbours: reconcilers/source fills its queues; reconcilers/changes makes the passes; facade sets it up.
package reconcilers
