// Not part of the public API.
//
// Package orchestration starts and stops controllers as the meaning of selectors changes on the cluster: a CRD can be
// installed after the operator, change, or be removed and come back. [New] creates an [Orchestrator], and [NewOnce] one
// that resolves selectors only at the start.
//
// The package handles whole resources, never single objects, and watches nothing itself: other packages request a
// resync when something may have changed. Package discovery resolves selectors. A [Runner], implemented by package
// reconcilers, runs the controllers.
package orchestration
