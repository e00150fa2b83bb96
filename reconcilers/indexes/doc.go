// Package indexes keeps what index functions say of objects, to be looked up by handlers of all kinds.
//
// It is apart because indices are filled on the goroutines of the informers, before anything is queued: a handler never
// sees an index that is older than its object. It never calls the API, and remembers nothing on objects.
//
// Neighbours: reconcilers/adapters below it call the functions; package controller above it feeds it, and holds the
// handlers back until the first listings are through.
package indexes
