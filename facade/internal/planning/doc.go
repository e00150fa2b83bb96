// Not part of the public API.
//
// Package planning predicts what a version of an operator would do on a cluster when it starts. [Make] reads the
// objects of a [Cluster], or of a [Dump] of one, and returns a [ChangePlan] with the handlers that would be called, and
// why.
//
// The predictions are those of the engine: package reconcilers makes the first pass over each object up to the first
// call. This package lists the objects, finds records that no handler uses any more, and formats the report. It never
// writes.
package planning
