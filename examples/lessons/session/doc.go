// Package session tests the terminal sessions of the manual: it runs the commands of a session.txt on an operator in
// virtual time, and compares the log with the lines of the file.
//
// Main entry point: Play. A page of docs quotes the file, and test/documents compares the quote.
package session
