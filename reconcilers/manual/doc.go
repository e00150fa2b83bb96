// Not part of the public API.
//
// Package manual has the addresses of pages of the documentation, for log messages, errors and alerts.
//
// It stands apart because every layer can refer to a page. It does not have texts of pages. A test in test/documents
// checks that each address leads to a page and to a heading in docs.
package manual
