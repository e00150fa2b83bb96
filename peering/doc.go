// Package peering lets several operators share a cluster without handling the same objects at once: each of them keeps
// a record of itself in a ClusterKopfPeering or KopfPeering object, as Kopf's own operators do, and pauses while the
// record of another one says that it must.
//
// It stands apart because peers are told by the format of these objects alone, whatever they handle. It never knows of
// handlers or reconcilers, and never makes or removes a peering object.
//
// Its parts: a [Record] is what one operator says of itself; [Judge] is the decision about a status full of them;
// [Identity] names an operator; a [Member] keeps one operator's record, and does what the decision says. Not here yet:
// a gate that carries the decision to the engine, the search for peering objects, a lock for a manager's leader
// election. So an operator neither looks for peers nor keeps a record of itself, and no other package uses this one.
//
// Neighbours: storage/progress formats the times; package facade will wire members to the engine.
package peering
