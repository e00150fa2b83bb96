// Package logkeys finds log lines that have a key twice, such as one in the values of the logger and again in the line.
//
// It stands apart because loggers gather their values on their way through many packages: no source shows all keys of a
// line, so the tests of several packages look at the lines themselves. It never changes the log.
//
// Its neighbours are the harnesses of the tests under reconcilers; test/documents has the keys that each line adds.
package logkeys
