// Package namespaces says which namespaces an operator serves: those that its patterns match, from the time when they
// are seen until nothing is left in them.
//
// It is apart because that is a matter of names and of conditions alone, whatever is handled there. It never asks the
// API server, and never starts or stops anything.
//
// No other package uses it yet: operators take namespaces by their names only.
//
// Neighbours: package orchestration will start and stop controllers by the set, as it does by kinds that appear and
// vanish, which are package discovery's.
package namespaces
