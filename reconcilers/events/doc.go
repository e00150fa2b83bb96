// Not part of the public API.
//
// Package events calls event handlers once for each raw event of an object, in order. Package controller adds the
// events to a [Queue] on the informer's goroutine, and calls [EventHandling.DeliverNext] at the start of each pass over
// the object.
//
// The package stores nothing on the object, computes no essence and no cause, and never retries a handler. An error
// does not delay the handling of changes. [Loops] slow down handlers that call themselves again by their own writes.
//
// Package reconcilers/adapters selects and calls the handlers.
package events
