// Not part of the public API.
//
// Package patching writes the changes of the framework and of the handlers to one object: a merge-patch and
// transformation functions, in as few requests as the API server allows, each with the guards that it needs.
//
// It is apart because the rules of a safe write (the status first, the uid and the resource version as guards, the
// classes of refusals) are the same for all callers. It never decides what to write or when, never waits between
// attempts, and never modifies the given bodies and patches, except by Patch's own methods.
//
// Neighbours: storage/diffbase and storage/progress put their records into Patch.Merge; reconcilers/events,
// reconcilers/changes and reconcilers/background write through a Writer, and decide what a conflict or a refusal leads
// to; webhooks answers with AdmissionOps.
package patching
