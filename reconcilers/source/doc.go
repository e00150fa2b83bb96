// Package source turns what an informer sees into requests of a priority queue.
//
// It is apart because it runs on the informer's goroutine, synchronously, before anything is queued: what must be known
// before an object is handled is noted here. It never calls the API, never blocks, and decides on nothing.
//
// Neighbours: package controller owns the informers and the queues.
package source
