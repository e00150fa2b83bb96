// Package patching writes what the framework and the handlers want changed on one object: a merge-patch and
// transformation functions, split into as few requests as the API server allows, each with the guard it needs.
//
// It stands apart because the rules of a safe write (the status first, the uid and the resource version as guards, what
// a refusal means) are the same for every part of the engine and for the handlers. It never decides what is written or
// when, never waits between attempts, and never modifies the bodies or patches it is given, except by Patch's own
// methods.
//
// Its neighbours: storage/diffbase and storage/progress put their records into Patch.Merge; reconcilers/adapters and
// reconcilers/changes decide what a conflict or a refusal leads to; webhooks answers with AdmissionOps.
package patching
