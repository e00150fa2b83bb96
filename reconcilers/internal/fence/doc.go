// Not part of the public API.
//
// Package fence refuses requests from the moment that the manager does not wait for its operator any more, and writes
// while peers of the operator may act in its place.
//
// It is apart because it deals with the manager and with single requests, and knows neither objects nor handlers. It
// never ends anything itself: whoever is refused ends by that.
//
// Neighbours: package reconcilers puts it around the requests of an operator, and the facade around the writes of its
// handlers; package timing limits how long requests may take.
package fence
