// Package diffbase makes the essence of an object, which is the part of it whose changes count, and keeps the essence
// that was handled last on the object: the diff-base. By both, an operator sees changes from when it was not running.
//
// It stands apart because the essence decides what is handled at all: it is Kopf's to the key, and a pure function of
// the object. It never talks to a cluster, never modifies an object or an essence (they share what they have in
// common), and knows nothing of handlers and their progress.
//
// Its neighbours: storage/progress, of the same layer, removes its own annotations from essences; storage/diff
// compares essences; reconcilers/cause decides by that what has happened.
package diffbase
