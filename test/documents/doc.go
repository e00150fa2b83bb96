// Package documents compares documents with the sources: the table of log messages, the functions that CONTRIBUTING.md
// names, the deviations from Kopf with their tests, quotes of files, snippets of Go, and links between pages.
//
// It stands apart because documents go out of date in silence: nothing else fails when a function is renamed. It reads
// the sources as text and never runs them.
//
// Neighbours: test/layers looks at the shape of the sources; test/calltrace at the tour through them.
package documents
