// Not part of the public API.
//
// Package serving runs one operator in its own manager: Run makes the connection, the client and the manager, and
// serves until the context ends. Programs with a command line and processes that embed operators share it.
//
// It also contains the client that caches only given kinds, the endpoint of the probes, a webhook server without TLS,
// and the limit after which a process that does not exit is killed.
//
// It has no flags, handles no signals and changes no globals of the process, such as its loggers. Package commandline
// fills the Options from flags, the facade from code; package credentials keeps the connection authorized.
package serving
