// Not part of the public API.
//
// Package commandline is the command line of an operator: its flags, environment variables and sub-commands. [New]
// returns the root command, and [ExitCode] maps its error to the exit code.
//
// An operator inside of a project's own manager needs none of this, so the package uses operators only as a
// [serving.Process]. It registers and handles nothing, and it never exits the process: package facade does.
// Package console writes the log.
package commandline
