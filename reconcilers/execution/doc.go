// Package execution describes attempts: what one is asked and came to, what stopped it, and the states of handlers that
// are remembered between attempts.
//
// It is apart because it is pure: records and outcomes go in, records and outcomes come out, and the clock is an
// argument. So all rules of retries, limits and superseding are shown by tables. It never calls the API and never
// decides which handlers are wanted.
//
// Neighbours: storage/progress below it persists the records; reconcilers/adapters above it make the attempts;
// reconcilers/changes writes what they leave behind.
package execution
