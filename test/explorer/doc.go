// Package explorer cuts an operator off at every moment that could matter, and looks whether its objects end up right.
//
// It is apart because it asks one question of the whole runtime, through its public door: whatever dies, and whatever
// goes wrong with it, is everything done in the end, and nothing more often than it must be? A scenario is played once
// in peace, which gives its points: each write of the operator, before and after it takes effect, and each return of a
// handler. Then it is played anew for each point with the operator killed there, and for each of them together with
// each disturbance of the API: a sample of these courses by default, all of them with `make explore`. It never sleeps
// for real: a manager, the API server in memory and the clock run in a bubble.
//
// Neighbours: facade/facadetest/memapi is the API server; test/e2e kills real processes, less often.
package explorer
