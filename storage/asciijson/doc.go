// Not part of the public API.
//
// Package asciijson writes JSON values the way they are kept in annotations: compact, in ASCII, keys sorted.
//
// It stands apart from encoding/json because texts on objects are compared, by people and by Kopf's operators: what
// both write must look the same, "<>&" included, and must be read back as the very same value, whole floats included.
// It never reads JSON: any decoder does for what it writes.
//
// Its neighbours: storage/diffbase writes essences with it, storage/progress writes records.
package asciijson
