// Package observation is how the test kit hears of each attempt of an operator's handlers.
//
// It is apart because nobody else needs it: what it observes with travels in the context that the operator is run with,
// so the facade has no name for it.
//
// Neighbours: facadetest puts an observer in, the facade gives it to the handlers, and adapters call it.
package observation
