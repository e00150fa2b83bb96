package handlers

import "github.com/kopf-runtime/kopf-runtime/storage/diff"

// FullID is the id as it is persisted: with the field, if the handler has one. Indices are known by their own ids alone.
func FullID(id string, family Family, field diff.Path) string {
	if field == nil || family == Indexing {
		return id
	}
	return id + "/" + field.String()
}

// SubID is the id of a sub-handler. Its field is no part of it.
func SubID(parent, id string) string { return parent + "/" + id }
