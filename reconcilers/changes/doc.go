// Not part of the public API.
//
// Package changes handles one object once: from its present state to the one write that closes the cause. The entry
// point is Handling.Reconcile. Its steps are in [pass.runRound], in this order: refresh after a lost answer, observe,
// run the background, retry unsaved outcomes, check the interest, restore lost memory, copy between storages, ensure
// the finalizer, drop stale progress, restore progress, call the handlers that are due, close the cause or save its
// progress.
//
// The package combines the causes, selected handlers, their states and patches of one object in one pass. It does not
// watch or queue objects. Between passes, it keeps nothing but the Memory that its caller passes in.
//
// Neighbours: the packages of the layers below implement the steps; package controller above it feeds the passes from
// queues and caches.
package changes
