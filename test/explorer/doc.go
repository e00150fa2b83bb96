// Package explorer cuts an operator off at every relevant moment, and checks the final state of its objects.
//
// It is apart because it asks one question of the whole runtime, through its public door: after any death and any
// failure, is all work completed, and nothing repeated more often than necessary? The explorer for users plays the
// scenarios, some of their courses by default, all of them with `make explore NAME=courses`, and looks for handlers
// that are lost or repeated; the ledger here has the expected reports and objects, without looking at the uncut run.
// Planted faults show that both would notice.
//
// Neighbours: facade/facadetest/explorer plays; test/e2e kills real processes, less often.
package explorer
