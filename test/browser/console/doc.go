// Package console tests the page of the running operator in a browser: by pictures, by the rules of accessibility, by
// the keyboard, and by changes while the page is open. It also measures the page with 10,000 objects.
//
// It is separate from the page because only this module depends on a browser. It contains only tests: the page is in
// package internal/inspection, and its worlds are made with package journaltest.
package console
