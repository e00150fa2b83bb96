// Not part of the public API.
//
// Package console serves a page that shows a running operator to people: what it serves, how its objects stand, which
// retries wait, and who its peers are, as it changes.
//
// It is apart because it is HTML, and nobody else needs to know that there is a page. It only reads: there is nothing
// that it could be asked to do. It shows nothing that the journal does not have, and never asks the API server. The
// page is one, with its style and its script; nothing of it is built, or comes from elsewhere.
//
// Neighbours: package overview sums up the objects, package journal explains one of them; package inspection has the
// server, which keeps pages of other sites away.
package console
