// Not part of the public API.
//
// Package permissions computes the Kubernetes permissions that an operator needs, as rules of RBAC.
//
// [Needs] is a pure function of a [PermissionInput] and the resources of a cluster. Each [Need] is one rule with the
// namespaces in which it applies, and the feature and the handlers that use it. [Unresolved] are the kinds that are not
// among the resources. [BuiltIn] returns the resources of Kubernetes itself, and [FromCRD] those of a CRD, so that no
// cluster is needed.
//
// The table in docs/permissions.md is the reference: a row for each feature. Package manifests makes roles of the
// rules; this package neither sends requests nor writes manifests.
package permissions
