package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
)

// reportedChanges contains the changes listed in a former report, in the form of the list of equivalents: lines can
// have moved since.
type reportedChanges map[string]bool

var reportedLine = regexp.MustCompile(`(?m)^(\S+):\d+:\d+: (.+) (?:survived the tests of .*|is reached by no test)$`)

// readReported reads what a former run has printed, whatever else is there.
func readReported(file string) (reportedChanges, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the former report: %w", err)
	}
	told := reportedChanges{}
	for _, found := range reportedLine.FindAllStringSubmatch(string(text), -1) {
		told[found[1]+": "+found[2]] = true
	}
	if len(told) == 0 {
		return nil, fmt.Errorf("reading the former report: %s does not list a survivor", file)
	}
	return told, nil
}

// only returns the reported changes.
func (r reportedChanges) only(mutants []*mutant) []*mutant {
	return slices.DeleteFunc(mutants, func(one *mutant) bool { return !r[one.file+": "+one.change()] })
}
