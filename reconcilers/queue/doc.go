// Package queue decides which request of a kind is served next, and when there is a place for it.
//
// It is apart because this is what tenants compete for: one whose handlers hang must not stop the deletions of others,
// and one who edits without an end must not stop their retries. A request is handed out together with a place; so what
// waits for one waits in the queue, where it is merged with what comes later, and costs no goroutine. It knows requests
// only, never objects, and calls nobody but its observer.
//
// Neighbours: package source says what requests there are, and of which priority; package controller runs what is
// handed out.
package queue
