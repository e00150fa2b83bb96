// Not part of the public API.
//
// Package standstill reports bubbles of testing/synctest whose virtual time has stopped permanently: every goroutine of
// the bubble waits, and at least one of them for a mutex, which is no durable wait.
//
// [GuardBubble] is called in a bubble and watches it in real time, from outside. It reports states that no machine is too
// slow for: a goroutine that can run, or that waits for something outside of the bubble, is never reported.
package standstill
