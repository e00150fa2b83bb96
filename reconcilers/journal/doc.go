// Not part of the public API.
//
// Package journal remembers, in memory and within bounds, what one operator has decided about each object, and answers
// why a handler was called or not.
//
// It is apart because whoever decides must not care who will ask: the steps of a pass tell it what they have found, and
// go on. It never decides anything, never asks the API server, and keeps neither objects nor values that are secret: of
// Secrets and of redacted fields it has paths alone, and no text of an error of theirs.
//
// Neighbours: packages changes, events, background and controller tell it; package facade serves the answers as JSON,
// and prints them.
package journal
