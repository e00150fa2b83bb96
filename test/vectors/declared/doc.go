// Package declared builds handlers, filters and storages from the inputs of the conformance vectors, with the options
// of Kopf's decorators.
//
// It stands apart because the harnesses of several packages read the same declarations, and none may know less of them
// than another. It plays nothing and compares nothing: functions and their behaviour are of the harnesses.
//
// Its neighbour is test/vectors, which reads the files.
package declared
