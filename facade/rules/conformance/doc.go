// Not part of the public API.
//
// Package conformance holds rules to a real API server: a table of requests, with what becomes of each, is given to the
// rules in plain Go, to a kube-apiserver that has the policies made of them, and to one that has to ask an operator.
//
// It is apart from the tests of the rules because it needs the binaries of a control plane. It has tests only.
//
// Neighbours: package rules; test/e2e has the suites of the operator.
package conformance
