// Package memapi is an API server in memory, as an http.RoundTripper: no sockets, no processes, no time of its own.
//
// It is apart because whole operators, with their real clients, caches and queues, are to be played in virtual time,
// where nothing may wait for anything outside of the bubble of testing/synctest. It never admits more, or less, than
// the real server does of what operators rely on: versions, conflicts, preconditions, finalizers, subresources and
// watches. That is proven by one script of requests played against both. It has no schemas, no admission, no
// server-side apply.
//
// Neighbours: test/explorer and the tests of package reconcilers run operators on it; test/e2e has the real server.
package memapi
