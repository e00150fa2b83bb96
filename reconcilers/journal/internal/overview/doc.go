// Not part of the public API.
//
// Package overview sums up what a journal knows of each object, for whoever looks at all of them at once: a state in a
// word, the last decision in a sentence, and the retries that wait. Problems come first.
//
// It is apart because the journal only notes, in the way of handlers, and must not do for each entry what is wanted
// once a second at most, or never: here, an object is looked at again only if it has a new entry since the last time.
// It has no values that the journal does not have, and never asks the API server.
//
// Neighbours: package journal has the entries, package console shows this to people.
package overview
