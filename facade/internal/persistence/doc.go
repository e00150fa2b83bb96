// Not part of the public API.
//
// Package persistence checks that the API server would take what the storages of an operator write, and that the
// records of handlers are kept apart.
//
// It is apart because a storage has rules of its own, so the only way is to ask it: each one is given an empty patch,
// and the places that it fills are looked at. It never writes to an object, and never reads one.
//
// Neighbours: package storages contains what users' storages do; package facade names the setting in every error.
package persistence
