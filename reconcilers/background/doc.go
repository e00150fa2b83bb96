// Not part of the public API.
//
// Package background runs daemons and timers, which live beside the handling of their object's changes.
//
// It is apart because background handlers run across many passes, and store no progress on the object. To stop one, the
// package asks it to stop, then cancels its context, and at last abandons it. An idle timer is an entry in the queue of
// its controller, and costs no goroutine. It never sets or removes finalizers, and never calls change handlers.
//
// Neighbours: package changes starts and stops handlers in a pass by Supervise, and decides on the finalizer by its
// result; package controller owns the queue.
package background
