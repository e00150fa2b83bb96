package main

import (
	"fmt"
	"strings"
)

const (
	// linesAgain are told of each failure once more, and no line is longer than so many bytes.
	linesAgain = 30
	widthAgain = 2000
)

// failure is a test that failed, with the beginning of what it said about that.
type failure struct {
	where, test string
	said        []string
}

// newFailure leaves out what Ginkgo says of a suite before its first failure.
func newFailure(where, test string, output []string) failure {
	for i, line := range output {
		if strings.Contains(line, "[FAILED]") {
			output = output[i:]
			break
		}
	}
	f := failure{where: where, test: test}
	for _, line := range output[:min(linesAgain, len(output))] {
		if len(line) > widthAgain {
			line = line[:widthAgain] + "...\n"
		}
		f.said = append(f.said, line)
	}
	return f
}

// repeat tells all failures at the end, as their packages may have ended long before the last one did.
func (r *report) repeat() {
	for i, f := range r.failures {
		if i == 0 {
			r.show("\n-- what failed, once more:\n")
		}
		r.show(fmt.Sprintf("-- %s: %s\n", f.where, f.test))
		r.show(f.said...)
	}
}
