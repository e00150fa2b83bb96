// Package adapters wraps the call of one function, one concern a file: limits, deadline, log, metrics, error classes,
// recovery.
//
// It is apart because every handler is a Reconciler of attempts, and all that Kopf promises around a call is a
// decorator of it: each can be read, tested and left out alone. An adapter wraps, it never rebuilds, and it never
// writes to the API.
//
// Neighbours: reconcilers/execution below it has the attempt and the rules of outcomes; reconcilers/changes above it
// runs the chain for each handler that is due.
package adapters
