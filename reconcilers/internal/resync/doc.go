// Not part of the public API.
//
// Package resync says when what is served is compared again with what the API server has.
//
// It is apart because those who see a reason for it (a watch on CRDs, a watch on objects that fails) know nothing of
// those who act on it. It never asks the API server.
//
// Neighbours: package orchestration makes the resyncs; packages discovery and controller request them.
package resync
