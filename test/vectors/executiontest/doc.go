// Package executiontest reads the limits of attempts from recorded cases of Kopf, and gives outcomes in their form.
//
// It is apart because the same cases are played twice: by the rules alone, in package execution, and by the whole chain
// around a call, in reconcilers/adapters. It never plays a case itself.
//
// Neighbours: test/vectors/declared reads the handlers of the cases; test/vectors has the files.
package executiontest
