// Not part of the public API.
//
// Package controller handles the objects of one kind in one namespace, or in all: its informer, its queue, and the
// passes over its objects.
//
// It is apart because every kind has a cache and a controller of its own, which start and end together: a kind that
// fails ends alone, and the manager's cache is never touched. It never decides what a change means: package changes
// does, one object and one pass at a time. It does not know which kinds there are.
//
// Neighbours: package source fills the queue; packages events, changes, background and indexes work on what a pass
// finds; package orchestration above it says when controllers run.
package controller
