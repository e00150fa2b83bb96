// Not part of the public API.
//
// Package execution describes attempts to call handlers: their questions, outcomes and limits, and the states of
// handlers between attempts.
//
// It is apart because it is pure: records and outcomes go in, records and outcomes come out, and the clock is an
// argument; so tests show all rules of retries, limits and superseding by tables. It never calls the API, and never
// selects handlers.
//
// Neighbours: storage/progress below it persists the records; reconcilers/adapters above it make the attempts;
// reconcilers/changes writes what they leave behind.
package execution
