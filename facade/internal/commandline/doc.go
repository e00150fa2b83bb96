// Not part of the public API.
//
// Package commandline is the command line of an operator: its flags, the cluster they mean, and a manager that runs the
// operator until it is told to stop.
//
// It is apart because an operator inside of a project's own manager needs none of it. It knows an operator by a small
// interface, never registers or handles anything, and never exits: package facade, which has the exported functions,
// does. Neighbours: package console writes the log.
package commandline
