// Not part of the public API.
//
// Package manifests makes the manifests with which an operator runs in a cluster.
//
// [Generate] turns a [ManifestInput] and the [Options] of the user into files, in the order in which they are applied.
// The templates are those of a Helm chart; for the other formats, they are executed here, so that all formats have the
// same objects. [ReadCRDs] reads the user's CRDs, and [ProposeRules] the requests of a former run.
//
// The rules of RBAC come from package clusterneeds, and webhook configurations from package reviews. This package sends
// no requests.
package manifests
