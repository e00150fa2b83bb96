// Not part of the public API.
//
// Package events calls event handlers once for each raw event of an object, in order.
//
// It is apart from package changes because it stores nothing on the object and computes no diff: it never retries a
// handler, never interprets an event, and never delays the handling of changes after an error.
//
// Neighbours: reconcilers/adapters below it select the handlers and call them; package controller above it fills the
// queue from the informers, and empties it before each pass over the object.
package events
