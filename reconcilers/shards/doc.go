// Not part of the public API.
//
// Package shards divides the objects of a kind among the replicas of an operator. A [Range] is one of equal parts of
// the hash of metadata.uid: the hash of Kubernetes for the shardSelector of lists and watches. Every object belongs to
// exactly one range, for its whole life.
//
// Package peering/sharding decides which replica has which range.
package shards
