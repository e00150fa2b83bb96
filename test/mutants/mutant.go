package main

import "fmt"

type outcome int

const (
	untried outcome = iota
	unreached
	survived
	killed
)

// mutant is one change of the code.
type mutant struct {
	id           int
	file         string // relative to the module's folder, with slashes
	line, column int
	function     string // "T.Method" for a method, "" outside of functions
	from, to     string // the source before and after the change, on one line

	outcome outcome
	// tests are the packages whose tests reached it.
	tests []string
}

func (m *mutant) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", m.file, m.line, m.column, m.change())
}

// change is what the list of equivalents has, beside the file: lines move too often.
func (m *mutant) change() string { return fmt.Sprintf("%s: `%s` to `%s`", m.function, m.from, m.to) }

// alive says whether it makes sense to try further tests.
func (m *mutant) alive() bool { return m.outcome != killed }
