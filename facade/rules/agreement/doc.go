// Not part of the public API.
//
// Package agreement compares the match conditions that an operator writes with its own filters. For each filter and
// each request of a table, API servers from Kubernetes 1.28 on must send the request if and only if the operator would
// call its handler. A filter without a condition receives all requests.
//
// It has tests only. They are separate from package webhooks/admission, which creates the conditions, because only the
// module of the rules depends on the CEL code of API servers. Package conformance has the tests with a real API server.
package agreement
