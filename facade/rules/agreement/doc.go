// Not part of the public API.
//
// Package agreement holds the match conditions that an operator writes to its own filters: for each filter and each
// request of a table, API servers of Kubernetes 1.28 must send the request if, and only if, the operator would call its
// handler; a filter that has no condition is asked about everything.
//
// It is apart from package webhooks/admission, which makes the conditions, because only the module of the
// rules has the CEL of API servers. It has tests only.
//
// Neighbours: package rules, and conformance, which asks a real API server.
package agreement
