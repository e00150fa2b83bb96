// Not part of the public API.
//
// Package indexes keeps the in-memory indices. An Indexer calls the index functions for the objects of one resource,
// and stores their entries in an Index, which handlers of all resources can read.
//
// The functions run on the goroutines of the informers, before a request is queued: a handler never sees an index that
// is older than its object. The package does not call the API, and stores nothing on objects.
//
// Neighbours: reconcilers/adapters below it call the functions; package controller above it passes the events on, and
// lets handlers wait for Readiness until the first listings are indexed.
package indexes
