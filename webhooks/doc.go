// Not part of the public API.
//
// Package webhooks is the place for admission, and has no code of its own: webhooks/review takes one review from its
// request to its response, webhooks/internal/server brings it over HTTP, webhooks/configurations tells the cluster what
// to send, webhooks/tunnels where the server is, webhooks/certificates has what both need to trust each other, and
// webhooks/admission makes one thing of these.
//
// Neighbours: reconcilers/handlers describes the handlers, reconcilers/adapters makes their calls, and facade has the
// verbs.
package webhooks
