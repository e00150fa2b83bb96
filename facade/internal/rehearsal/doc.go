// Not part of the public API.
//
// Package rehearsal is the door by which the test kit gets at the handlers of an operator that is never run, and at
// what keeps their children: as the engine would get them, and with clients of the test.
//
// It is apart because the facade's exports are for operators: the kit needs more of an operator than its users do, and
// the facade cannot import the kit. It has no logic: package facade puts its function here when it is linked.
//
// Neighbours: package facade fills it, package facadetest calls it; nobody else does.
package rehearsal
