// Not part of the public API.
//
// Package discovery resolves selectors to resources. [ParseSpelling] and [ParseSelector] read the names that users
// give, [Inquiry.Resolve] requests the documents of the API server and decides which resources are handled, and the
// [CRDWatcher] requests a resync when CRDs change.
//
// The rules depend on names and verbs alone, and are the same for handlers of all families. An Inquiry caches the
// documents for one round only.
//
// The package does not watch the objects of a resource, and does not start controllers. Package orchestration does, by
// the results; the facade passes the users' spellings on.
package discovery
