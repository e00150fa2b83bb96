// Not part of the public API.
//
// Package preflight checks whether a cluster has what an operator needs: permissions, kinds, status subresources and
// fields in schemas, and a clock that agrees with that of this machine.
//
// [Run] makes the checks of a [CheckInput] on a [Server], and returns a [CheckReport]. Each [Finding] names the
// handlers and the fix. What may not be read is unknown, which is not a failure.
//
// The needs come from package permissions, and the resources from package discovery. This package only reads: the
// reviews of permissions that it creates are not stored.
package preflight
