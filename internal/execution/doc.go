// Not part of the public API.
//
// Package execution describes attempts to call handlers: Attempt is one call, Outcome its result, Limits its retries
// and timeouts, and State the progress of all handlers of an object between attempts.
//
// The package is pure: records and outcomes go in, records and outcomes come out, and the clock is an argument. So
// tests cover all rules of retries, limits and superseding with tables. It does not call the API, and does not select
// handlers.
//
// Neighbours: storage/progress below it persists the records; reconcilers/adapters above it make the attempts;
// reconcilers/changes writes their changes and outcomes.
package execution
