// Not part of the public API.
//
// Package freezing pauses running operators for some time, or resumes them, on request of a user. [Order.CarryOut] writes
// a record into peering objects like an operator with a high priority, or removes it.
//
// In contrast to package peering, it looks for kinds and namespaces once and explains why a request has no effect;
// operators keep looking and wait. It never creates a peering object. It does not renew its record: without a resume,
// the record ends with its lifetime.
//
// Package commandline has the flags. Packages discovery and namespaces find the objects.
package freezing
