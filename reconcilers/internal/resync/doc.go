// Not part of the public API.
//
// Package resync connects the packages that detect changes of the API with the one that reacts. A [Requester] accepts
// requests to resolve all selectors again; [Requests] is its implementation, and the orchestrator receives from it.
//
// The package sends no requests to the API server. Packages discovery and controller request resyncs, and package
// orchestration makes them.
package resync
