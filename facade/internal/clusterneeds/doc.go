// Not part of the public API.
//
// Package clusterneeds computes what an operator needs in a cluster, and checks whether a cluster has it: permissions,
// kinds, status subresources and fields in schemas, and a clock that agrees with that of this machine.
//
// [Needs] is a pure function of a [PermissionInput] and the resources of a cluster. Each [Need] is one rule of RBAC
// with the namespaces in which it applies, and the feature and the handlers that use it; package manifests makes roles
// of them. [BuiltIn] returns the resources of Kubernetes itself, and [FromCRD] those of a CRD, so that no cluster is
// needed. The table in docs/permissions.md is the reference: a row for each feature.
//
// [Run] makes the checks of a [CheckInput] on a [Server], and returns a [CheckReport]. Each [Finding] names the
// handlers and the fix. What may not be read is unknown, which is not a failure. The checks only read: the reviews of
// permissions that they create are not stored.
package clusterneeds
