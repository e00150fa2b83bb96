// Not part of the public API.
//
// Package health knows how an operator is: whether it does what its process should be doing now, or what it waits for.
//
// It is apart because those who report know nothing of each other: the process, the orchestrator, the controllers,
// their watches and their workers. It never contacts anybody: a check looks at what was reported, so it is quick, and
// an API server that is down restarts no process. An operator that is paused, or is not the leader, is in order.
//
// Neighbours: package reconcilers hands the checks to the manager; package controller reports.
package health
