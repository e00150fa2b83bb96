// Not part of the public API.
//
// Package conformance compares rules with a real API server. It evaluates a table of requests in plain Go, by a
// kube-apiserver with the policies of the rules, and by a kube-apiserver that calls an operator's webhook. All verdicts
// must be equal.
//
// It has tests only. They are separate from the tests of package rules because they need the binaries of a control
// plane. The end-to-end tests of the operator are in test/e2e.
package conformance
