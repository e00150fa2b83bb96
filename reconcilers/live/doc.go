// Not part of the public API.
//
// Package live has a [Set] that changes while the operator runs, such as the served namespaces, or the ranges of a
// sharded operator. Its readers wait for changes.
package live
