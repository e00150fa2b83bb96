// Not part of the public API.
//
// Package transport has what the requests of an operator to the API server pass: limits of requests and watches in
// time, further attempts after transient failures as in Kopf, and the [Fence], which refuses requests when another
// process may act. [Wrap] puts them around a client.
//
// It is apart because it deals with single HTTP requests, and knows neither objects nor handlers. A watch that it ends
// looks like one that the server has closed, so that the clients above it continue the watch from there. It never sends
// a request again that the server refused permanently; packages above decide when to retry a failed pass.
//
// Neighbours: package reconcilers wraps the clients of an operator, package controller those of its informers; packages
// health and metrics have transports of their own.
package transport
