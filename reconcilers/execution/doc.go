// Package execution keeps the account of attempts: which handlers are due, what an attempt came to, what is remembered.
//
// It is apart because it is pure: records and outcomes go in, records and outcomes come out, and the clock is an
// argument. So all rules of retries, limits and superseding are shown by tables. It never calls the API and never
// decides which handlers are wanted.
//
// Neighbours: storage/progress below it persists the records; reconcilers/adapters above it wrap the attempts;
// reconcilers/changes runs them.
package execution
