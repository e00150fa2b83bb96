// Package chaos has five operators of one peering killed, frozen and cut off, with clocks that are a minute apart,
// while objects change. They are processes of their own, each behind a proxy of its own, on a real API server.
//
// It is apart because it needs a control plane, processes that stop, and real time. Handlers report themselves when
// they begin, write and end; records on objects are not used. call_history_test.go defines when two operators act at
// once. A seed determines the history. The short form is a part of make test-all; make explore NAME=chaos plays for
// longer, and with genuine Kopf among the five. With CHAOS_HISTORY=FILE, the whole history is there afterwards.
//
// sharding_test.go has replicas of one operator that share the objects, with an API server that restarts. The short
// form is a part of make test-all, too; make explore NAME=sharding plays for longer, with 3,000 objects.
//
// Neighbours: the tests of package peering have the same turbulence on virtual time; test/interop has operators of
// Kopf.
package chaos
