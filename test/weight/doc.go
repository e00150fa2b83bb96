// Package weight measures what a project takes on with this one: the lines of its go.mod, the modules that are linked
// into its program, the size of that, and that nothing of the test kit is in it. The scales are a program with
// controller-runtime alone (bare), and the smallest example beside it.
//
// It is apart because it looks at programs from the outside, and never runs them. It measures neither time nor memory.
//
// Neighbours: test/newest has the versions that are tested beside those that go.mod requires.
package weight
