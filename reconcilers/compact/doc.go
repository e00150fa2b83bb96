// Not part of the public API.
//
// Package compact keeps the objects of a cache as compressed JSON, or as compressed protobuf messages where all who
// read them have the Go type of these, beside the little of their metadata that the engine asks for at every event.
//
// It is apart because it is about what an object takes in memory, and never about what is in it: managedFields are all
// that it leaves out. Whoever asks for JSON gets it of both forms. It never decodes an object before somebody asks for
// that, and it keeps nothing decoded. What the objects of a kind have in common is a dictionary, which they share: one
// of them as it once was, and later another one, if that has more in common with them by then.
//
// Neighbours: package informers makes the objects of what the API server sends; packages source, memory and controller
// pass them on; storage/jsontext finds members in texts, and decodes them once for all who ask in a pass.
package compact
