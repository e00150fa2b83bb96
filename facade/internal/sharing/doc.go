// Not part of the public API.
//
// Package sharing shows how the replicas of an operator share its objects: which replica has which ranges, and which
// ranges have no owner. [Read] makes one list of Leases and returns a [Report] for users and programs.
//
// Package peering/sharding makes and reads the Leases. Package commandline has the command top.
package sharing
