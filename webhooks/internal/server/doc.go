// Not part of the public API.
//
// Package server serves the reviews of one operator over HTTP: which path is of which handler, who may not go on, and
// which status a request gets that is no review.
//
// It is apart because what comes over the network is nobody's: it may be anything, of any size and at any pace, while a
// review is a matter of JSON and handlers alone. It never reads a review itself, and it has neither a port nor a
// certificate: those are of the webhook server of controller-runtime, on which it is registered.
//
// Neighbours: webhooks/review below answers the reviews; webhooks/configurations tells the cluster the paths;
// webhooks/certificates has the certificates.
package server
