// Not part of the public API.
//
// Package controller handles the objects of one kind in one namespace, or in the whole cluster. A [Controller] has its
// own informer and queue, and runs the passes over the objects. [Run] starts the controllers of one resource, and
// [RunIndexing] only fills its indices.
//
// Every kind has its own cache and controller, which start and end together. A kind that fails therefore ends alone,
// and the manager's cache is never touched.
//
// Package source fills the queue. Package changes decides how to handle a change, one object and one pass at a time.
// Packages events, background and indexes do the other steps of a pass. Package orchestration decides which kinds run,
// and when.
package controller
