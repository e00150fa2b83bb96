// Package mistakes makes the typical mistakes of people who write an operator, and keeps what they are told in a table:
// docs/mistakes.md.
//
// It stands apart because a message is only good if somebody reads it next to what caused it: the table shows both, and
// a test writes it anew, so that every change of a message is seen in review. It never looks at how a message is made.
//
// Neighbours: test/documents compares other documents with the sources; facade has tests of single messages with the
// places that they name.
package mistakes
