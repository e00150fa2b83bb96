// Not part of the public API.
//
// Package queue is the priority queue of a controller: it decides which request a worker serves next.
//
// It is apart because tenants compete for workers: a tenant whose handlers hang must not stop the deletions of others,
// and a tenant who edits without end must not stop the retries of others. A queue hands out a request only when a
// worker's place is free; so waiting requests stay in the queue, where later requests are merged with them, and cost no
// goroutine. It never reads objects, and calls nothing but its observer.
//
// Neighbours: package source defines the requests and their priorities; package controller serves what it gets from
// the queue, and releases it.
package queue
