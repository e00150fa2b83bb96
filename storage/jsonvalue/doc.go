// Not part of the public API.
//
// Package jsonvalue decodes JSON into values as Kubernetes has them: maps, lists, strings, booleans, int64 and float64.
//
// It is apart because whatever comes as a text needs it: objects, answers, and what annotations hold. Plain texts,
// which nearly all are, take it half the time of sigs.k8s.io/json or less. It never decides what is well-formed
// otherwise: a text that is not, has strings that are no UTF-8 or have halves of a pair of surrogates, or is nested in
// more than a hundred levels, goes to that decoder. So all values are those of that decoder, and so are the errors.
//
// Neighbours: storage reads annotations by it, storage/jsontext objects, and it finds the ends of strings as this does;
// storage/asciijson is the way back.
package jsonvalue
