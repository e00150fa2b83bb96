// Not part of the public API.
//
// Package adapters makes a Reconciler of each registered handler: its function inside of adapters, one concern a file.
//
// It is apart because all that Kopf promises around a call is a decorator of it: to reconstruct the cause from the
// last-handled essence, to filter, to go on from the progress, to limit, log, measure, classify errors and recover.
// Each can be read, tested and left out alone; chains.go lists the adapters of each family. The same chain is asked
// whether the function would be called. An adapter wraps, it never rebuilds, and it never writes to the API.
//
// Neighbours: reconcilers/execution below it has the attempt and the rules of outcomes; reconcilers/changes, events,
// background and indexes above it ask and call the Reconcilers.
package adapters
