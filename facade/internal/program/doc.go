// Not part of the public API.
//
// Package program runs an operator: in a process of its own, or in the manager of a project.
//
// A [Process] connects the command line, or a call of Run, with a manager, between the startup and the cleanup. An
// [ActivityRunner] calls the handlers of startup, cleanup, login and probes. A [Coordination] decides by peers or by a
// lease whether the process may act. [AddDebugServer], [StartLine] and [WarnOfCache] inform the user.
//
// The operator itself is an interface here. Flags belong to package commandline, managers to package serving.
package program
