// Not part of the public API.
//
// Package compact stores the objects of a cache in little memory: as compressed JSON, or as compressed protobuf
// messages if all readers use the Go type of the kind. An [CachedObject] also has the metadata that the engine needs at
// every event. A [Packer] makes the objects of one kind; [OpenTrimmed] opens an object that is not cached.
//
// The package drops managedFields and does not interpret other fields. Readers get JSON from both forms. Objects are
// decoded only on request, and the decoded form is not kept. Objects of a kind are compressed against a shared
// dictionary: a former state of one of them, replaced later if another state compresses better.
//
// Package informers makes the objects of the API server's answers; packages source, memory and controller pass them on.
// Package internal/jsontext finds members in texts, and decodes a text once for all readers of a pass.
package compact
