package handlers

import "github.com/kopf-runtime/kopf-runtime/storage/diff"

// FullID is the id as it is persisted: with the field, if the handler has one that is not the empty key. Indices are
// known by their own ids alone.
func FullID(id string, family Family, field diff.Path) string {
	suffix := field.String()
	if suffix == "" || family == Indexing {
		return id
	}
	return id + "/" + suffix
}

// SubID is the id of a sub-handler. Its field is no part of it.
func SubID(parent, id string) string { return parent + "/" + id }
