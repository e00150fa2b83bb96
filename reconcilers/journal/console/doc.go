// Not part of the public API.
//
// Package console serves a page that shows a running operator to people: what it serves, how its objects stand, which
// retries wait, and who its peers are, as it changes.
//
// The console only reads the journal, and never asks the API server. An Overview sums up each object: its state in a
// word, the last decision in a sentence, and the retries that wait; problems come first. It looks at an object again
// only if it has a new entry. The page consists of one document, a style and a script; nothing of it is built or loaded
// from other hosts.
//
// Package journal has the entries and explains one object; package inspection has the server, which keeps pages of
// other sites away.
package console
