package main

import (
	"fmt"
	"strings"
)

const (
	// maxOutputLines is the number of lines that are repeated of each failure, and maxLineLength their maximum length
	// in bytes.
	maxOutputLines = 30
	maxLineLength  = 2000
)

// failure is a failed test with the beginning of its output.
type failure struct {
	packageName, test string
	output            []string
}

// newFailure leaves out what Ginkgo says of a suite before its first failure.
func newFailure(where, test string, output []string) failure {
	for i, line := range output {
		if strings.Contains(line, "[FAILED]") {
			output = output[i:]
			break
		}
	}
	f := failure{packageName: where, test: test}
	for _, line := range output[:min(maxOutputLines, len(output))] {
		if len(line) > maxLineLength {
			line = line[:maxLineLength] + "...\n"
		}
		f.output = append(f.output, line)
	}
	return f
}

// repeat prints all failures at the end, because their packages can have ended long before the last one.
func (r *report) repeat() {
	for i, f := range r.failures {
		if i == 0 {
			r.show("\n-- what failed, once more:\n")
		}
		r.show(fmt.Sprintf("-- %s: %s\n", f.packageName, f.test))
		r.show(f.output...)
	}
}
