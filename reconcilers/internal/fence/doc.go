// Package fence refuses requests from the moment that the manager does not wait for its operator any more.
//
// It is apart because it deals with the manager and with single HTTP requests, and knows neither objects nor handlers.
// It never ends anything itself: whoever is refused ends by that.
//
// Neighbours: package reconcilers puts it around the requests of an operator; package timing limits how long these may
// take.
package fence
