// Package progress stores the progress of handlers on their object: one record per unfinished handler, in Kopf's
// format. So retries, delays and outcomes survive a restart of the operator, a migration from Kopf, and the migration
// back.
//
// A [Storage] fetches, stores and purges a [Record]: [Annotations] in annotations, [Status] in a field, [Smart] in
// annotations with a fallback to the status, and [Multi] in several storages. The format of records must not change,
// because records outlive the processes that wrote them. The package makes no requests, does not read the clock, and
// never modifies an object or an essence; changes go to a merge-patch.
//
// Package storage/diffbase builds the essences that are cleared here; internal/execution converts between records
// and the states of handlers.
package progress
