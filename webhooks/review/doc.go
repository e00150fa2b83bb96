// Not part of the public API.
//
// Package review answers admission reviews.
//
// A [Reviewer] decodes a request, chooses the handlers, calls them, and returns a [Response] with their errors,
// warnings, and changes as a JSON patch. Each review is independent: there are no queues, records or retries.
// [OwnWrites] describes the requests of the operator itself, for which no handler is called.
//
// The package has no HTTP server and no connection to the cluster, and it does not modify the object under review.
// Package webhooks/internal/server receives the requests, reconcilers/adapters calls the handlers, and
// internal/patching computes the patch.
package review
