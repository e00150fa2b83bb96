// Not part of the public API.
//
// Package activities calls the handlers that belong to the operator as a whole and not to an object: startup, cleanup,
// login and probe handlers. The entry points are [ActivityHandlers.Run], and [Probing] for probes that are requested
// over HTTP.
//
// There is no object to store progress on, so each run starts from zero and keeps its retries in memory. Each attempt
// runs through reconcilers/adapters, with the same limits and error modes as for other handlers.
//
// The package does not decide when an activity runs or what its failure leads to: package reconcilers and the facade
// do. It does not use a Kubernetes client.
package activities
