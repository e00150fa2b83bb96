// Not part of the public API.
//
// Package patching writes the changes of the framework and of handlers to one object. A [Patch] is a merge-patch with
// transformation functions. A [PatchWriter] sends it in as few requests as the API server allows, each with the guards
// that it needs, by an [ObjectClient]. [AdmissionOps] encodes a patch for an admission response.
//
// The rules of a safe write are the same for all callers: the status first, the uid and the resource version as guards,
// the classes of refusals. The package does not decide what to write or when, and does not wait between attempts. It
// never modifies the given bodies and patches, except by the methods of Patch.
//
// Packages storage/diffbase and storage/progress add their records to Patch.Merge. Packages reconcilers/events, changes
// and background write patches, and decide how to continue after a conflict or a refusal. Package webhooks answers with
// AdmissionOps.
package patching
