// Package webhooks is the place for admission: webhooks/review takes one review from its request to its response. It
// has no code of its own.
//
// Neighbours: reconcilers/handlers describes the handlers, reconcilers/adapters makes their calls, and facade has the
// verbs.
package webhooks
