// Not part of the public API.
//
// Package schemas is what custom resource definitions say about their kinds: which fields there are, which values they
// take by default, which values they may have, and how lists are merged by a server-side apply.
//
// It is apart because it works on values alone, without a server around them. Wherever it is light enough, it has the
// code of the real server do the work: structural schemas, pruning and lists come from k8s.io/apiextensions-apiserver,
// validation from k8s.io/kube-openapi, types for merging from k8s.io/apimachinery. It never evaluates CEL, nor calls
// conversion webhooks: definitions with those are refused.
//
// Neighbours: memapi stores objects by it.
package schemas
