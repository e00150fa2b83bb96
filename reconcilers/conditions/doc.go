// Not part of the public API.
//
// Package conditions says in the status of objects how their handlers are getting on: Ready, Reconciling and Stalled,
// as kubectl wait and kstatus understand them, with the generation that this is about. All of it are pure functions of
// JSON values: what there is, and what has come of the handlers, give what there should be.
//
// It is apart because it needs nothing to be known of causes, attempts and writes. It never asks or writes anything,
// and has no clock.
//
// Neighbours: package changes has the outcomes, and writes what comes of them; package controller finds out whether a
// kind takes conditions at all; the facade sets the conditions that handlers name themselves.
package conditions
