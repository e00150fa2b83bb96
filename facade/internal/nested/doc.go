// Not part of the public API.
//
// Package nested reads and changes the fields of objects without a Go type, by the texts of their paths.
//
// It is apart because what an object has at a path is a matter of maps alone: the facade adds the verbs, and the name
// of the object in every error. It never puts a text of the object into an error, for that may be secret, and never
// shares what it reads or sets with its caller.
//
// Neighbours: package codec splits the paths, and decodes and encodes values; package facade has the users' functions.
package nested
