// Not part of the public API.
//
// Package owned knows the objects that the handled ones own, and tells their handlers what happens to these.
//
// It is apart because it stands between two kinds: the informer of the children says what is there, and the passes over
// their owner ask for it. It keeps what is there by now, not what has happened: quick changes of a child are one, and
// nothing is remembered on the objects. It lists and watches nothing by itself, and never looks at a clock but for
// retries.
//
// Neighbours: package controller feeds it from both sides; package events has the handlers of an object's own events.
package owned
