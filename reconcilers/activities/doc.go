// Not part of the public API.
//
// Package activities calls the handlers of what an operator does as a whole, apart from any object: its startup, its
// cleanup, its logins and its probes.
//
// It is apart because such handlers have no object that would remember them: an activity begins anew each time, and is
// over in memory. It never decides when an activity is due, and never contacts a cluster.
//
// Neighbours: reconcilers/adapters below it makes each attempt, with the same limits and error modes as for any other
// handler; package reconcilers and the facade above it know when an activity is due, and what follows from it.
package activities
