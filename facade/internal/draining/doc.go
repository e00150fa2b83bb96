// Not part of the public API.
//
// Package draining removes everything that an operator has stored in a cluster, before the operator is uninstalled:
// finalizers, annotations and fields on objects, marks on children, webhook entries, peering records and Leases.
// [Drain.Run] lists these things, or removes them, and returns a [DrainReport].
//
// It calls no handlers, except those of deletions with [Drain.RunDeletions]. It refuses to work while a process of the
// operator may be running, because that process would store everything again. A drain can be repeated after any
// interruption: each object is written at most once per subresource, with a test of its resource version.
//
// Package commandline has the flags. The storages of package storage have the places on objects.
package draining
