// Not part of the public API.
//
// Package serving runs one operator in a manager of its own: it makes the connection, the client and the manager, and
// serves until the context ends.
//
// Programs with a command line and processes that embed operators share it. It has no flags, handles no signals, and
// changes nothing that is global to the process, such as its loggers. It also has the client of such an operator, which
// caches only the kinds that were named, and the endpoint of its probes.
//
// Neighbours: package commandline fills the Options from flags, the facade from code; package credentials keeps the
// connection authorized.
package serving
