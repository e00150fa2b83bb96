// Not part of the public API.
//
// Package tracing makes a span of each attempt of a handler, and one of each request that it sends to the API server.
//
// It is apart because it alone decides what a span has: ids of handlers, names of objects, outcomes and types of
// errors, and nothing else. No value of an object and no text of an error ever enters a span. It links the API of
// OpenTelemetry, never its SDK, and uses no global of it.
//
// Neighbours: the facade gives it the provider, and its observer to the handlers; the progress of handlers keeps the
// trace for their next attempts.
package tracing
