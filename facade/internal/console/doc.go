// Not part of the public API.
//
// Package console writes the log of a program with a command line: lines for people or JSON for machines, to one
// writer, or records to a log/slog handler of the program. [New] and [NewForHandler] return loggers; [ForwardKlog] and
// [ForwardStandard] redirect the loggers of libraries.
//
// Much of a log is text from outside: values of objects, messages of handlers, and values that format themselves and
// may panic. No such text may control a terminal, look like another line, or replace a key of the framework. Package
// commandline selects level and format by its flags. This package decides only which messages of libraries are for
// debugging.
package console
