// Not part of the public API.
//
// Package liveness serves the results of the probes of an operator at one address, as JSON.
//
// It is apart because it is all that an operator has of HTTP by itself: what it has of the health of its controllers is
// served by the manager. It never calls a probe: it asks a function for the results, which may keep them.
//
// Neighbours: package commandline gives it the address and the function.
package liveness
