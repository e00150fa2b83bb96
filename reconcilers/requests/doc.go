// Not part of the public API.
//
// Package requests tells what an HTTP request to the API server asks for, in the words of RBAC.
//
// It stands apart because metrics and traces say the same of a request, far from each other. It reads the method, the
// path and whether it is a watch; it never looks into bodies, and never tells names of objects or selectors.
//
// Neighbours: reconcilers/metrics counts by the verb, facade/internal/tracing names spans.
package requests
