// Not part of the public API.
//
// Package exitlimit ends a process that does not end by itself in time once it has begun to.
//
// It is apart because nothing else in the program may end it: what ends the process must not wait for anything, and
// takes no lock while it does so. It never decides that the program ends.
//
// Neighbours: package facade knows when the end begins, and the limit.
package exitlimit
