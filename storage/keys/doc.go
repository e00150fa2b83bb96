// Not part of the public API.
//
// Package keys names the annotations in which an operator keeps its memory on the objects it handles.
//
// It stands apart because these names are persisted: they must be the same, to the byte, in every release and in
// Kopf's own operators, or else a handler that was done would run again. It never reads or writes the values of
// annotations, and modifies none of its inputs.
//
// Its neighbours: storage/progress and storage/diffbase keep records and essences under these keys; facade checks
// prefixes and handler ids with it at registration.
package keys
