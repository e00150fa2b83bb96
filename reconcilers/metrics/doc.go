// Not part of the public API.
//
// Package metrics has the Prometheus metrics of one operator: all families kopf_*, their labels and their lifetime. All
// operators of a process share the families of a registry, by the label "operator".
//
// Adapters and controllers report events to [Operator], which counts them; states are read at each collection, so they
// cost nothing in between. [APIRequestOf] describes a request to the API server; traces use the same description.
//
// No label has the name or namespace of an object. The package serves nothing: the registry is the caller's.
// docs/metrics.md has the table, which a test compares.
package metrics
