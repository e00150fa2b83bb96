// Package memapi is an API server in memory, as an http.RoundTripper: no sockets, no processes, no time of its own.
//
// It is apart because whole operators, with their real clients, caches and queues, are to be played in virtual time,
// where nothing may wait for anything outside of the bubble of testing/synctest. It never admits more, or less, than
// the real server does of what operators rely on: versions, conflicts, preconditions, finalizers, subresources and
// watches; of kinds that custom resource definitions describe, schemas, versions and server-side apply by keys. That is
// proven by one script of requests played against both. What it does not do is listed at [Server]. Webhooks are
// functions: see [Admission] and [Reviewer]. What goes wrong between a client and the server is for a [Connection].
//
// Neighbours: internal/schemas reads definitions; test/explorer and the tests of the engine's packages use the server;
// test/e2e has the real one.
package memapi
