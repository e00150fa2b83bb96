// Not part of the public API.
//
// Package attendance joins an operator to all peering objects of its scope. It finds their kinds, has a membership in
// each object, watches the objects, and combines the gates of all memberships.
//
// It handles what differs between clusters: kinds and objects that are missing, appear, disappear, or may not be read.
// It does not decide who acts, and does not create peering objects.
//
// Package peering has the memberships and their rules. The facade translates the settings, and has the gate of the
// engine.
package attendance
