// Not part of the public API.
//
// Package attendance joins an operator to all peering objects of its scope. An [Attendance] finds their kinds, has a
// membership in each object, watches the objects, and combines the gates of all memberships.
//
// It handles the differences between clusters: kinds and objects that are missing, appear, disappear, or cannot be
// read. It does not decide which operator acts, and does not create peering objects.
//
// Package peering has the memberships and their rules. The facade converts the settings, and provides the engine's
// gate.
package attendance
