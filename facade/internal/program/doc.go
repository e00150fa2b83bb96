// Not part of the public API.
//
// Package program contains the parts of an operator beside its handlers of objects, in a process of its own or in the
// manager of a project.
//
// An [ActivityRunner] calls the handlers of startup, cleanup, login and probes. A [Coordination] decides by peers or by
// a lease whether the process may act. [AddDebugServer], [StartLine] and [WarnOfCache] inform the user.
//
// Flags belong to package commandline, managers and processes to package serving.
package program
