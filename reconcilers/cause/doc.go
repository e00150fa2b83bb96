// Not part of the public API.
//
// Package cause decides why an object must be handled: created, updated, deleted, resumed, or not at all. It also
// redacts what is stored of an object, and restores it for the comparison.
//
// It is apart because it is the one place that compares the present object with its last-handled state. It derives the
// cause from these two alone, never from the type of a watch event; so changes made while no operator was running are
// causes like all others. It never calls handlers, never writes, and uses no Kubernetes client.
//
// Neighbours: storage/diffbase and storage/progress below it read the essences and clear them of progress; the cause
// adapters of reconcilers/adapters above it use the same facts.
package cause
