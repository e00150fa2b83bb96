// Not part of the public API.
//
// Package console is the log of a program that people start: lines for people, or JSON for machines, on one writer; or
// a handler of log/slog that the program has.
//
// It is apart because it is all about text that others have a say in: values of objects, messages of handlers, panics
// of values that log themselves. No such text may control a terminal, look like another line, or take the place of a
// key of the framework. It never decides what is logged: package facade gives it the level and the format, which
// package commandline has from the flags. But it knows the libraries below, whose chatter is for debugging alone.
package console
