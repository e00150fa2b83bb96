// Package jsonvalue decodes JSON into values as Kubernetes has them: maps, lists, strings, booleans, int64 and float64.
//
// It is apart because whatever comes as a text needs it: objects, answers, and what annotations hold. It never decides
// what is well-formed: whatever is not plain goes to sigs.k8s.io/json, which most of the time would take two to three
// times as long. So its values are those of that decoder, and so are its errors.
//
// Neighbours: storage reads annotations by it, storage/jsontext objects; storage/asciijson is the way back.
package jsonvalue
