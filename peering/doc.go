// Package peering is the place for what lets several operators share a cluster
// without handling the same objects at once: records of who is alive in the
// ClusterKopfPeering and KopfPeering objects that Kopf's own operators read and
// write, the decision who is free to act and who pauses, a gate that carries
// the decision to the engine, and a resource lock for a manager's leader
// election. None of it is here yet: the package has no exports, an operator
// neither looks for peers nor keeps a record of itself.
//
// It stands apart because peers are told by the objects' format alone, whatever
// they handle. It never knows of handlers or reconcilers: it stands on the
// lowest layer, and package facade, its neighbour, wires the gate to the engine.
package peering
