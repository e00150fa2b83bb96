// Not part of the public API.
//
// Package manual defines the addresses of documentation pages that log messages, errors and alerts link to.
//
// It has no imports, so every layer can use it. It does not contain texts of pages. A test in test/documents checks
// that each address leads to an existing page and heading below docs.
package manual
