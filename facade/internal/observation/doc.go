// Not part of the public API.
//
// Package observation is how others hear of each attempt of an operator's handlers: the test kit, and traces.
//
// It is apart because these know nothing of one another: what the kit observes with travels in the context that the
// operator is run with, so the facade has no name for it. It never decides what is observed.
//
// Neighbours: facadetest puts an observer in, facade/internal/tracing is another one, the facade gives them to the
// handlers, and adapters call them.
package observation
