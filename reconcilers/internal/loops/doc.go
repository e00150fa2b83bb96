// Not part of the public API.
//
// Package loops slows down handlers that trigger themselves by their own writes. A [Guard] counts the calls of one
// object that were caused by an own write and led to another write. It returns the delay of the next such call, and
// [LogLoop] reports a loop that was found.
//
// The package keeps no objects and reads no clock. Callers decide which writes are their own: package changes compares
// essences, package events compares resource versions.
package loops
