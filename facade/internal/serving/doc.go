// Not part of the public API.
//
// Package serving runs one operator in a manager of its own: it makes the connection, the client and the manager, and
// serves until the context ends.
//
// It is apart because programs with a command line and processes that embed operators do the same from here on. It has
// no flags, handles no signals, and changes nothing that the process has once for all: loggers least of all.
//
// Neighbours: package commandline fills the Options from flags, the facade from code; package credentials keeps the
// connection authorized.
package serving
