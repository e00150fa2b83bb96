// Not part of the public API.
//
// Package console serves a page that shows a running operator: the kinds that it serves, the state of its objects, the
// retries that wait, and its peers. [New] returns the handler of the page, which updates itself.
//
// The console only reads the journal, and sends no requests to the API server. An [Overview] summarizes each object:
// its state in one word, the last decision in one sentence, and the waiting retries. Problems come first. It summarizes
// an object again only when the object has a new entry. The page consists of one document, one style and one script,
// which need no build and load nothing from other hosts.
//
// Package journal provides the entries, and explains one object. Package inspection runs the server, which rejects
// requests from pages of other sites.
package console
