// Not part of the public API.
//
// Package memory keeps what is known of the objects of one kind in one namespace between their passes.
//
// It is apart because it outlives the controllers: a kind that is served again meets no object for the first time
// again, does nothing twice that cannot be told from the object, and knows its own writes before its cache does. All of
// it is lost with the process; what must not be is written on the objects. It never calls the API or a handler.
//
// Neighbours: package changes says what a pass leaves behind; package controller makes the passes.
package memory
