// Package journaltest supports tests with journals. [StartStory] starts a [Story], which records entries for an object
// as an operator would, without calling handlers. [NewReader] returns a [Reader], which shows the recorded entries of
// an object as lines.
//
// No product code imports it. It is used by the tests of the packages that write to a journal, and by the tests of
// package inspection, also in a browser.
package journaltest
