// Not part of the public API.
//
// Package background runs daemons and timers. The entry points are the [Supervisor], which outlives the controllers of
// a resource, and [Supervisor.Supervise], which a pass calls to start and stop the handlers of its object.
//
// Background handlers run across many passes and store no progress on the object. The package stops a handler in
// stages, as Kopf does: it requests the stop, then cancels the context, and finally abandons the handler. An idle timer
// is an entry in the queue of its controller, without a goroutine.
//
// The package does not add or remove finalizers. Package changes does that, by the result of Supervise. Package
// controller owns the queue.
package background
