// Package program holds the parts that the Go contenders share: arguments, log and manager.
//
// It is separate so that they differ only in their handlers. It does not handle objects.
//
// Neighbours: the commands ours and byhand, which it runs.
package program
