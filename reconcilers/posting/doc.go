// Package posting posts Kubernetes events about objects, one by one and in order, as Kopf does.
//
// It is apart because the manager's recorder folds messages and drops types; and because posting must neither delay
// nor fail a handler. It never decides what is worth an event, and a lost event is only a line in the log.
//
// Neighbours: handlers post through handlers.Poster; package reconcilers runs the queue.
package posting
