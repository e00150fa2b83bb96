// Package program is what the contenders in Go have in common: their arguments, their log, and their manager.
//
// It is apart so that they differ in nothing but their handlers. It never says how objects are handled.
//
// Neighbours: the commands ours and byhand, which it runs.
package program
