// Not part of the public API.
//
// Package serving runs one operator in its own manager. [Process.Run] calls the startup handlers, makes the connection,
// the client and the manager, serves until the context ends, and calls the cleanup handlers. Programs with a command
// line and processes that embed operators share it, with [RunFlags] that override the settings of the operator.
//
// It also contains the client that caches only given kinds, the endpoint of the probes, a webhook server without TLS,
// and the limit after which a process that does not exit is killed.
//
// The operator itself is an interface here. The package handles no signals and changes no globals of the process, such
// as its loggers. Package commandline fills the options from flags, the facade from code; package credentials keeps the
// connection authorized.
package serving
