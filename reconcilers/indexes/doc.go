// Not part of the public API.
//
// Package indexes keeps the in-memory indices: it calls index functions for objects, and stores the entries they return
// for handlers of all resources to look up.
//
// It is apart because it fills the indices on the goroutines of the informers, before a request is queued: so a handler
// never sees an index that is older than its object. It never calls the API, and stores nothing on objects.
//
// Neighbours: reconcilers/adapters below it call the functions; package controller above it passes the events on, and
// lets handlers wait for Readiness until the first listings are indexed.
package indexes
