// Not part of the public API.
//
// Package metrics owns what one operator tells Prometheus: every family kopf_*, its labels, and what of it ends with
// the operator. All operators of a process share the families of a registry, by the label "operator".
//
// It stands apart so that names, labels and units are decided in one place, and nobody else has to know that several
// operators may share a registry. Counters and histograms are told of what happens; states are asked for at each
// collection, so that they cost nothing in between. It has no label with the name or namespace of an object, decides
// nothing, and serves nothing: the registry is the caller's.
//
// Neighbours: package adapters tells of attempts, package controller of queues and changes; package reconcilers shows
// the states, and docs/metrics.md has the table, which a test compares.
package metrics
