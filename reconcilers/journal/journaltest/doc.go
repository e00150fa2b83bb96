// Not part of the public API.
//
// Package journaltest fills journals for tests of what shows them: objects to which things have happened as they do in
// an operator, though nobody was called. And it reads what was noted of an object, a line for each entry, for the tests
// of those who tell a journal.
//
// It is a kit: no product code imports it. Its neighbours: package journal, whose doors it uses; the tests of package
// console, and those in a browser; those of packages changes, events, background, owned and controller.
package journaltest
