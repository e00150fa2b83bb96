// Package diffbase builds the essence of an object, which is the part of it that counts as its configuration, and
// stores the essence that was handled last on the object: the diff-base. By comparing the two, an operator detects
// changes that were made while it was not running.
//
// A [Storage] builds, fetches and stores essences: [Annotations] in an annotation, [Status] in a field, and [Multi] in
// several storages. Essences equal Kopf's in every key, because any difference would be handled as a change. The
// package makes no requests, never modifies an object or an essence, and does not depend on handlers or their progress.
//
// Package storage/progress removes its own annotations from essences; storage/diff compares essences; internal/cause
// decides by the differences.
package diffbase
