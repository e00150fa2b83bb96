// Not part of the public API.
//
// Package timing limits how long requests to the API server and its answers may take, and spaces watches.
//
// It is apart because it deals with single HTTP requests: it is one transport for informers, discovery and writes,
// which need not know of each other's limits. It never repeats a request, and a watch that it ends looks like one that
// the server has closed, so that the clients above it watch anew from where they were.
//
// Neighbours: package reconcilers puts it under all clients of an operator; package repeating, above it, makes further
// attempts, each with a limit of its own.
package timing
