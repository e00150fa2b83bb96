// Package console tests the page of the running operator in a browser: by pictures, by the rules of accessibility, by
// the keyboard, and by what changes while somebody looks. It also tells what the page costs at 10,000 objects.
//
// It is apart from the page because a browser weighs on nobody but this module. It has nothing but tests: the page is
// in package reconcilers/journal/console, and its worlds are made with package journaltest.
package console
