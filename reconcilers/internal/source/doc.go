// Not part of the public API.
//
// Package source turns the events of an informer into requests, and implements the priority queue that serves them.
// [Events] handles events, [InformerSource] connects them with an informer, and [PriorityQueue] hands out requests as
// far as [Slots] permits.
//
// Events are handled on the informer's goroutine, before their requests are added. Indices and memory are therefore up
// to date when a worker handles the object. This never calls the API server and never blocks.
//
// Tenants compete for workers: a tenant whose handlers hang must not stop the deletions of others, and a tenant that
// edits objects endlessly must not stop the retries of others. So the queue hands out a request only when a slot is
// free. Until then, later requests for the same object are merged with it, and it costs no goroutine.
//
// Package controller owns the informers, implements [EventObserver], and releases the requests that it has served.
package source
