// Package calltrace records which functions one event passes through, in which files, and how often each package is
// entered.
//
// It stands apart because it looks at the sources as text and at a run from outside: it adds a probe to every function
// of the product, in an overlay that only its own build sees, plays one story, and compares the calls with testdata and
// the tour in the documentation of package reconcilers. It never measures time.
//
// Neighbours: calltrace/record is the probe; calltrace/creation is the story; test/layers looks at what the sources say
// without running them.
package calltrace
