// Not part of the public API.
//
// Package peering lets several operators share a cluster without handling the same objects at once. Each operator keeps
// a record in a ClusterKopfPeering or KopfPeering object, as Kopf's operators do, and pauses while another operator's
// record demands that.
//
// An [Attendance] joins an operator to all peering objects of its scope: it finds their kinds, has a membership in
// each object, watches the objects, and combines the gates of all memberships. It handles the differences between
// clusters: kinds and objects that are missing, appear, disappear, or cannot be read.
//
// A [PeerRecord] describes one operator. [JudgeRecords] evaluates all records of an object. A membership keeps one
// record alive and sets a [WriteGate] accordingly; state.go has all of its rules and makes no requests. A
// [CombinedGate] joins the gates of several memberships, a [Lock] makes a manager's leader election follow a gate, and
// a [Lease] closes a gate when the process may have lost its manager's lease. [OperatorIdentity] names an operator.
//
// The package does not create or remove peering objects, and does not depend on the handled kinds. Package
// storage/progress formats the times. The facade converts the settings, and provides the engine's gate.
package peering
