// Package mistakes makes typical mistakes of operator authors, and compares the resulting messages with a table:
// docs/mistakes.md.
//
// It is separate because a message must be reviewed next to its cause: the table shows both, and a flag of its test
// rewrites the table, so that every change of a message is seen in review. It does not depend on how a message is made.
//
// Neighbours: test/documents compares other documents with the sources; facade has tests of single messages with the
// places that they name.
package mistakes
