// Package background runs the handlers that go on beside the changes of their objects: daemons and timers.
//
// It is apart because these have a life of their own: nothing of it is remembered on the objects, and what runs is
// asked, pressed and at last abandoned when it has to end. An idle timer is an entry in the queue of its kind, and
// costs no goroutine. It never decides on finalizers, and never calls handlers of changes.
//
// Neighbours: package changes asks what it needs to know of an object in a pass; package reconcilers owns the queues.
package background
