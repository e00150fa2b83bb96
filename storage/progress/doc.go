// Package progress keeps on an object how far each of its handlers got: one record per unfinished handler, in Kopf's
// format, so that retries, delays and outcomes survive a restart, a take-over from Kopf, and the way back.
//
// It stands apart because records outlive every process that wrote them: their format stays, whatever the engine makes
// of them. It never talks to a cluster, never looks at the clock, and never modifies an object or an
// essence; what is to be written goes to a merge-patch.
//
// Its neighbours: storage/diffbase, of the same layer, builds the essences that are cleared here; reconcilers/execution
// turns records into states of handlers, and back.
package progress
