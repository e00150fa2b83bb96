// Not part of the public API.
//
// Package cause decides why an object must be handled: it was created, updated, deleted, resumed, or nothing has
// changed. The entry points are [Detect] and the [Lens], which reads the last-handled and the present essence.
// [Redaction] replaces stored values by digests, and restores them for the comparison.
//
// The cause is derived from these two essences alone and never from the type of a watch event. So changes that were
// made while no operator was running are causes like all others.
//
// The package does not call handlers, write, or use a Kubernetes client. Packages storage/diffbase and storage/progress
// store the essences and records; the adapters in reconcilers/adapters select handlers by the cause.
package cause
