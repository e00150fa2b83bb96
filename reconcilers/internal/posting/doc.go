// Not part of the public API.
//
// Package posting posts Kubernetes events about objects, one by one and in order, as Kopf does.
//
// It is apart because the manager's event recorder aggregates messages and takes only the types Normal and Warning; and
// because posting must neither delay nor fail a handler. It never decides what is worth an event, never retries, and
// only logs an event that it drops.
//
// Neighbours: handlers post through handlers.Poster; package reconcilers gives the Poster to the manager to run.
package posting
