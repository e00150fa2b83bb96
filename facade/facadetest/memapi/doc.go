// Package memapi implements a Kubernetes API server in memory, as an http.RoundTripper. It does not use sockets,
// processes or a clock of its own.
//
// It exists because complete operators, with real clients, caches and queues, are tested in virtual time: inside a
// testing/synctest bubble, code must not wait for anything outside of it. [New] returns a [Server] and [Config] the
// configuration for its clients. A [Connection] injects failures between a client and the server. [Admission] and
// [Reviewer] take the place of webhooks.
//
// The server accepts and refuses the same requests as the real one wherever operators depend on it: resource versions,
// conflicts, preconditions, finalizers, subresources and watches, and the schemas, versions and server-side apply of
// custom resources. Tests send one script of requests to both servers and compare the answers. Missing features are
// listed at [Server].
//
// The package internal/schemas reads definitions. Package test/explorer and the tests of the engine use this server;
// test/e2e uses a real one.
package memapi
