// Not part of the public API.
//
// Package election lets the replicas of one operator elect the one that acts, by a Lease. An [Election] runs beside the
// operator and closes a part of its gate while another replica may act. The process itself stays.
//
// The elector is that of client-go. This package adds what makes its result safe for writes: the permission to write
// follows the own renewals, a new holder waits for a former one that may not have noticed, and the Lease is released
// only by an operator that is idle. If a peering object decides who acts, the Lease is released.
//
// Package peering has the peering objects and the gate. The facade decides whether to elect.
package election
