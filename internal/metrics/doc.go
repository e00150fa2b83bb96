// Not part of the public API.
//
// Package metrics defines the Prometheus metrics of one operator: all families kopf_*, their labels and their lifetime.
// All operators of a process share the families of a registry, and differ in the label "operator".
//
// Adapters and controllers report events to [OperatorMetrics], which counts them. States are read at each collection,
// so they cost nothing in between. [APIRequestOf] describes a request to the API server; traces use the same
// description.
//
// No label contains the name or namespace of an object, because each value would be a series of its own. The package
// does not serve metrics: the registry belongs to the caller. A test compares the families with the table in
// docs/metrics.md.
package metrics
