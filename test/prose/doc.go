// Command prose checks the language of Markdown pages and of the comments and texts in Go files.
//
// It collects the text of each file, gives it to Vale with the rules in styles/Plain, and prints what Vale finds with
// file and line. From Go files it takes comments, error texts, log lines and the reasons of test cases; code stays out.
// Errors end the command with exit code 1. Suggestions are counted only.
//
//	go run . -root ../.. -base origin/main   # the lines that changed since the merge base
//	go run . -root ../..                     # all lines
//
// The module pins Vale and keeps it out of the other modules, as it needs cgo.
package main
