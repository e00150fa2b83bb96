// Not part of the public API.
//
// Package inspection serves what an operator knows about itself and its objects to people: why a handler was called or
// not, as JSON or as text, and, if they are asked for, the console and profiles of the process.
//
// It is apart because it speaks HTTP, and nothing else does that has to do with decisions. It only reads, never asks
// the API server, and shows no value that package journal does not have. Whoever can reach its address can read it, so
// its servers listen on this machine alone unless told otherwise, and answer to no other name there: a page of some
// other site must not be able to read it by a browser.
//
// Neighbours: package journal has the answers, package journal/console the page, package commandline asks for answers,
// package facade starts the server.
package inspection
