// Not part of the public API.
//
// Package jsontext reads JSON: it decodes texts into the values that Kubernetes uses (maps, lists, strings, booleans,
// int64 and float64), and has objects whose text is decoded only if a value is needed, once for all callers.
//
// [Decode] reads plain texts, which are nearly all, in half the time of sigs.k8s.io/json or less. Any other text goes
// to that decoder: malformed ones, strings that are not UTF-8 or have unpaired surrogates, more than a hundred levels.
// So all values and errors are those of sigs.k8s.io/json. [New], [From] and [After] make an [Object]; [Members] and
// [PastString] find parts of a text without decoding it.
//
// The package has no knowledge of Kubernetes objects and writes no JSON; storage/asciijson does that.
package jsontext
