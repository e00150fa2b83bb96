// Not part of the public API.
//
// Package loops slows down the handlers of one object that call themselves again and again by their own writes.
//
// Guard counts the calls that were caused by an own write and have written again, and returns how long the next such
// call must wait. It keeps no objects and reads no clock.
//
// The callers decide what an own write is: package changes compares essences, package events compares versions.
package loops
