// Not part of the public API.
//
// Package commandline is the command line of an operator: its flags, environment variables and sub-commands, and a
// manager that runs the operator until it is stopped. [New] returns the root command, and [ExitCode] maps its error to
// the exit code.
//
// An operator inside of a project's own manager needs none of this, so the package uses operators only through the
// interface [OperatorProcess]. It registers and handles nothing, and it never exits the process: package facade does.
// Package console writes the log.
package commandline
