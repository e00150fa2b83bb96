// Not part of the public API.
//
// Package schemas parses the schemas of custom resource definitions: the fields, their defaults, the valid values, and
// how a server-side apply merges lists. [Read] returns a [Definition] with one [Version] for each version; a Version
// prunes, defaults and validates objects.
//
// It works on values only and does not depend on a server. Where the code of the real server is small enough, it is
// used: structural schemas, pruning and lists from k8s.io/apiextensions-apiserver, validation from k8s.io/kube-openapi,
// and types for merging from k8s.io/apimachinery.
//
// It does not evaluate CEL rules or call conversion webhooks; both are [Extensions]. Package memapi stores the objects.
package schemas
