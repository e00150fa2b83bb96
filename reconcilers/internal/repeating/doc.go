// Not part of the public API.
//
// Package repeating repeats requests to the API server after transient failures, as Kopf does.
//
// It is apart because it deals with single HTTP requests, not with objects: packages above it decide when to retry a
// failed pass over an object, and no worker waits for that. It never repeats a request that the server refused for
// good, and gives up when the context of the request ends.
//
// Neighbours: package reconcilers wraps the transport of its own client, if the operator's settings ask for it.
package repeating
