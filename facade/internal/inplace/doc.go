// Not part of the public API.
//
// Package inplace tells which changes a handler has made in its copy of the object, where they are written nowhere.
//
// It is apart because it compares what an object was like with what it is and with what will be written, whoever
// handles it: it never changes an object, and never tells anybody by itself.
//
// Neighbours: package codec encodes the objects; package facade takes them before a handler is called, and warns.
package inplace
