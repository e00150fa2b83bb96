// Not part of the public API.
//
// Package storage edits JSON values in the two ways in which an operator's memory is kept on objects: merge-patches in
// place, and everything else never, by copies of the mappings on the way that share all that stays.
//
// It stands apart because diff-bases and records of progress must agree on where annotations are, what goes away with
// them, and when the marker of a prefix is due. It never reads what the values mean, and never talks to a cluster.
//
// Its neighbours below it in the tree: storage/diff compares values; storage/keys names the annotations;
// storage/asciijson writes values as text; storage/diffbase keeps what was handled, storage/progress what was
// attempted.
package storage
