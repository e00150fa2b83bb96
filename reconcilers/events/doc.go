// Package events calls the handlers of raw events: for each event of an object, in order, once.
//
// It is apart from the handling of changes because nothing is kept of it: no progress, no retries, no diff. It never
// decides what an event means, and never holds up the changes of the object.
//
// Neighbours: reconcilers/adapters below it select the handlers and call them; package controller above it fills the
// queue from the informers, and empties it before each pass over the object.
package events
