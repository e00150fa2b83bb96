// Not part of the public API.
//
// Package tracing creates a span for each attempt of a handler, and one for each request that the attempt sends to the
// API server. [AttemptTracer] observes the handlers, and [TraceRequests] wraps a transport.
//
// This package alone decides about the content of spans: ids of handlers, names of objects, outcomes and types of
// errors. A span never contains values of an object or texts of errors. The package uses the API of OpenTelemetry, but
// not its SDK, and no global of it.
//
// The facade passes the provider, and adds the observer to the handlers. The records of handlers store the trace for
// later attempts.
package tracing
