// Package documents compares documents with the sources: the table of log messages, the functions that CONTRIBUTING.md
// names, links and headings, the Go code and the quotes of pages, versions and modules, and the deviations from Kopf
// with their tests.
//
// It stands apart because documents become outdated without a failure elsewhere, such as when a function is renamed. It
// reads the sources as text and never runs them.
//
// Neighbours: test/layers looks at the shape of the sources; test/calltrace at the tour through them.
package documents
