// Package background runs the handlers that go on beside the changes of their objects: daemons and timers.
//
// It is apart because these have a life of their own: nothing of it is remembered on the objects, and what runs is
// asked to stop, cancelled, and at last not waited for any more. An idle timer is an entry in the queue of its
// controller, and costs no goroutine. It never decides on finalizers, and never calls handlers of changes.
//
// Neighbours: package changes asks what it needs to know of an object in a pass; package controller owns the queues.
package background
