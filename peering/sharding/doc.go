// Not part of the public API.
//
// Package sharding shares a fixed number of ranges of objects among the replicas of one operator, by Leases. A
// [Sharding] runs beside the operator. It opens the gate of a range while this process holds it, and closes the gate
// before another process can. A [Range] is one of equal parts of the hash of metadata.uid: the hash of Kubernetes for
// the shardSelector of lists and watches. Every object belongs to exactly one range, for its whole life. [OwnRanges]
// are those of this process.
//
// The *layout* Lease has the number of ranges; it is also the Lease of an election, so that sharded and elected
// replicas exclude each other. Each replica renews a Lease of its own, and each range has a Lease that is written only
// when its holder changes. core.go and the files beside it have all rules and make no requests; requests.go makes them.
//
// Package reconcilers has the gates, and package election the Lease of a single active replica.
package sharding
