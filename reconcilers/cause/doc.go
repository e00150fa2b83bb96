// Package cause decides why an object must be handled: created, updated, deleted, resumed, or not at all.
//
// It is apart because it is the one place where the present object is compared with the remembered one: everything
// is derived from the two, never from the type of a watch event, so that changes made while no operator was running
// are causes like any others. It never calls handlers, never writes, and knows no Kubernetes client.
//
// Neighbours: storage/diffbase and storage/progress below it give and clean the essences; the adapters of causes in
// reconcilers/adapters above it ask the same facts.
package cause
