// Not part of the public API.
//
// Package peering lets several operators share a cluster without handling the same objects at once: each of them keeps
// a record of itself in a ClusterKopfPeering or KopfPeering object, as Kopf's own operators do, and pauses while the
// record of another one says that it must.
//
// It stands apart because peers are told by the format of these objects alone, whatever they handle. It never knows of
// handlers or reconcilers, and never makes or removes a peering object.
//
// Its parts: a [Record] is what one operator says of itself; [Judge] is the decision about a status full of them;
// [Identity] names an operator; a [Membership] keeps one operator's record in one object, and does what the decision
// says; a [CombinedGate] is one gate of several memberships; a [Lock] has a manager's leader election follow a gate.
//
// Neighbours: storage/progress formats the times; package attendance finds the objects in a cluster and follows them.
package peering
