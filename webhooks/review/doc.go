// Not part of the public API.
//
// Package review takes one admission review from its request to its response: it decodes it, chooses the handlers that
// serve it, calls them, and says what they said: errors, warnings, and their changes as one JSON patch.
//
// It is apart because a review has neither a queue nor a memory nor retries: one request, one answer. It knows no HTTP,
// no certificates and no cluster, and it never writes to the object under review.
//
// Neighbours: webhooks/internal/server brings the requests and sends the responses; reconcilers/adapters below make the
// calls; reconcilers/patching turns the changes into operations.
package review
