// Not part of the public API.
//
// Package cachedreads is the client of a program of its own: it reads what the API server has now, but for the kinds
// that were named, which it reads from the manager's cache.
//
// It is apart because in a manager that the project makes, the client is the project's. A cache must be allowed to list
// and watch a kind as a whole, so nothing is ever cached unasked; and a cached read never waits for a cache that cannot
// be filled: it fails, and says why. Neighbours: package commandline makes the manager with it.
package cachedreads
