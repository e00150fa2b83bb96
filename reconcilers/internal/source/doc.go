// Not part of the public API.
//
// Package source turns the events of an informer into requests, and has the priority queue from which workers take
// them.
//
// Events are handled on the informer's goroutine, before their requests are added: so the indices and the memory of an
// object are up to date when a worker handles the object. This never calls the API and never blocks.
//
// Tenants compete for workers: a tenant whose handlers hang must not stop the deletions of others, and a tenant who
// edits without end must not stop the retries of others. So the queue hands out a request only when a worker's place is
// free. Waiting requests stay in the queue, where later requests are merged with them, and cost no goroutine.
//
// Package controller owns the informers, is the Watcher, and releases the requests that it has served.
package source
