// Not part of the public API.
//
// Package storage edits the JSON values in which an operator keeps its memory on objects. It changes merge-patches in
// place. It never changes objects and essences: [WithValue] and [WithoutValue] copy the mappings along the path, and share the
// rest.
//
// The storages of essences and of progress use it, so that they agree on the place of annotations, on the removal of
// empty mappings, and on the marker of a prefix. The package does not interpret the stored values and makes no
// requests.
//
// Package keys names the annotations, asciijson encodes values as text, and diff compares them. Package diffbase stores
// last-handled configurations, and progress stores the records of handlers.
package storage
