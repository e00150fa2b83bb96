// Not part of the public API.
//
// Package controls reads and makes the values of the annotations that control the handling of one object: a request for
// another run of its handlers, a pause, and the list of the handlers that have failed permanently.
//
// [ParseRequest] and [ParsePause] check the values that users write: they return an error with a remedy, and never
// panic. [Failures] is written by operators, with a bounded size; it is read as any foreign data, because users can
// edit it.
//
// The package makes no requests and decides nothing about handlers. Package keys names the annotations, package changes
// acts on them, and the command line writes them.
package controls
