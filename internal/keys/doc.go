// Not part of the public API.
//
// Package keys names the annotations in which an operator stores its memory on the objects that it handles.
// [AnnotationKeyOn] and [AnnotationKeysOn] return the annotations of a key on an object, [MarkedPrefixes] finds the
// annotations of operators, and [ValidateID] and [ValidatePrefix] check what a user configures.
//
// These names are stored in clusters. They must equal those of all earlier releases and of Kopf, or a handler that has
// finished would run again. The package does not read or write the values of annotations, and never modifies its
// inputs.
//
// Packages progress and diffbase store records and essences under these keys; facade validates prefixes and handler ids
// at registration.
package keys
