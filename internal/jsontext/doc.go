// Not part of the public API.
//
// Package jsontext decodes JSON into the values that Kubernetes uses: maps, lists, strings, booleans, int64 and
// float64. An [LazyObject] is decoded only if a value is needed, and once for all callers; [New], [NewFromSource]
// and [NewFromValue] make one. [EachMember] and [SkipString] find parts of a text without decoding it.
//
// [Decode] reads plain texts, which are nearly all, in at most half the time of sigs.k8s.io/json. All other texts go to
// that decoder: malformed ones, strings that are not UTF-8 or have unpaired surrogates, more than a hundred levels. So
// all values and errors equal those of sigs.k8s.io/json.
//
// The package does not depend on Kubernetes objects and does not encode JSON; internal/asciijson does.
package jsontext
