// Package creation is the story that package calltrace plays: an operator is idle, one object with one handler is
// created, and all is quiet again.
//
// It stands apart because it is built with a probe in every function of the product; without, it is an ordinary test.
// Its neighbour is calltrace/record, the probe.
package creation
