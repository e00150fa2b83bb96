// Package facade is what users import: an operator is a name, selections of objects, and plain functions under verbs.
//
// It is apart because generics, options and the command line are for people, and the engine is better off without them:
// each verb fills one handlers.Handler, and that is all the engine sees. It never watches, writes or retries anything
// itself, and registration never panics: it keeps errors, and the set-up of the operator reports all of them.
//
// Begin with [New] and its [Settings], [For] and [Main]; in a project that has a manager, with
// [Operator.SetupWithManager].
// Neighbours: package reconcilers below it runs the handlers; facade/internal has what users do not call: codec decodes
// objects, commandline runs a program, which reaches its cluster by connection and cachedreads, and console writes its
// log; examples/ shows every verb at work.
package kopf
