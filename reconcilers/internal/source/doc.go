// Not part of the public API.
//
// Package source turns what an informer sees into requests of a priority queue.
//
// It is apart because it runs on the informer's goroutine, before it adds the request: so the indices and the memory of
// an object are up to date when a worker handles the object. It never calls the API and never blocks.
//
// Neighbours: package queue orders the requests; package controller owns the informers and is the Watcher.
package source
