// Not part of the public API.
//
// Package attendance keeps an operator present in all peering objects of its scope: it finds their kinds, has a
// membership in each object, follows it, and makes one gate of all of them.
//
// It stands apart from the rules of one object, as it is about what a cluster has: kinds and objects that are not
// there, come, go, or may not be read. It never decides who acts, and never makes a peering object.
//
// Neighbours: package peering has the members; facade knows what the settings ask for, and gives the gate of the
// engine.
package attendance
