// Package changes handles one object once: from its present state to the one write that closes the cause, as a list
// of small steps: reread, observe, deliver, weigh, spread, hold, settle, account, run, conclude.
//
// It is apart because here the pure parts meet: causes, selected handlers, accounts and patches of one object in one
// pass. It never watches, never queues and keeps nothing between passes but the Memory that its caller gives it.
//
// Neighbours: the packages of the layers below do the work of the steps; package reconcilers above it feeds the passes
// from queues and caches.
package changes
