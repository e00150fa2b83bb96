// Not part of the public API.
//
// Package discovery resolves selectors to resources: it parses how users name resources, asks the API server which
// ones it serves, and decides which of these are handled.
//
// It is apart because its rules depend on names and verbs alone, and are the same for handlers of all families. It
// never watches the objects of a resource, and never starts controllers; an Inquiry caches answers for one round only.
//
// Neighbours: package orchestration resolves selectors again whenever the CRDWatcher or a timer requests a resync;
// facade passes the users' spellings on.
package discovery
