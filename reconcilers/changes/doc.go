// Not part of the public API.
//
// Package changes handles one object once: from its present state to the one write that closes the cause. The steps
// stand in pass.round, in the order in which they run: refresh after a lost answer, observe, attend to the background,
// retry what is unwritten, check interest, sync storages, ensure the finalizer, drop stale progress, restore progress,
// call the handlers that are due, close the cause or save its progress.
//
// It is apart because here the pure parts meet: causes, selected handlers, their states and patches of one object in
// one pass. It never watches, never queues and keeps nothing between passes but the Memory that its caller gives it.
//
// Neighbours: the packages of the layers below do the work of the steps; package controller above it feeds the passes
// from queues and caches.
package changes
