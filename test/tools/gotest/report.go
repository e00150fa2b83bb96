package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// event is a line of go test -json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// report is the state of a run.
type report struct {
	out       io.Writer
	now       func() time.Time
	startedAt time.Time
	packages  map[string]*runningPackage
	failures  []failure
}

// runningPackage is a package that has not ended.
type runningPackage struct {
	startTimes map[string]time.Time // the tests that have not ended
	output     map[string][]string  // what a test said
	endedTests int                  // tests
}

func newReport(out io.Writer, now func() time.Time) *report {
	return &report{out: out, now: now, startedAt: now(), packages: map[string]*runningPackage{}}
}

// follow reads events until the end, and lists the running tests at the given interval.
func (r *report) follow(events io.Reader, every time.Duration) {
	lines := make(chan string)
	go func() {
		defer close(lines)
		reader := bufio.NewReader(events)
		for {
			line, err := reader.ReadString('\n')
			if line != "" {
				lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	beat := time.NewTicker(every)
	defer beat.Stop()
	for {
		select {
		case line, more := <-lines:
			if !more {
				r.repeat()
				return
			}
			r.read(line)
		case <-beat.C:
			r.say()
		}
	}
}

// read takes a line in. One that is no event is shown as it is.
func (r *report) read(line string) {
	var e event
	if err := json.Unmarshal([]byte(line), &e); err != nil || e.Action == "" {
		r.show(line)
		return
	}
	switch {
	case e.Action == "build-output":
		r.show(e.Output)
	case e.Package == "":
	case e.Test == "":
		r.readPackage(e)
	default:
		r.readTest(e)
	}
}

func (r *report) readPackage(e event) {
	switch e.Action {
	case "output":
		// The result of the package is the line that go test shows; PASS and FAIL alone would repeat it.
		if text := strings.TrimSpace(e.Output); text != "PASS" && text != "FAIL" {
			r.show(e.Output)
		}
	case "fail":
		// A test that did not end is the one that ended all.
		p := r.of(e.Package)
		for _, test := range slices.Sorted(maps.Keys(p.output)) {
			r.fail(e.Package, test)
		}
		delete(r.packages, e.Package)
	case "pass", "skip":
		delete(r.packages, e.Package)
	}
}

func (r *report) readTest(e event) {
	p := r.of(e.Package)
	switch e.Action {
	case "run":
		p.startTimes[e.Test] = r.now()
	case "output":
		if !strings.HasPrefix(e.Output, "=== ") { // that it runs, or goes on
			p.output[e.Test] = append(p.output[e.Test], e.Output)
		}
	case "fail":
		r.fail(e.Package, e.Test)
		p.end(e.Test)
	case "pass", "skip":
		p.end(e.Test)
	}
}

// fail shows what a test said that failed.
func (r *report) fail(where, test string) {
	said := r.of(where).output[test]
	r.show(said...)
	r.failures = append(r.failures, newFailure(where, test, said))
}

func (r *report) of(name string) *runningPackage {
	p := r.packages[name]
	if p == nil {
		p = &runningPackage{startTimes: map[string]time.Time{}, output: map[string][]string{}}
		r.packages[name] = p
	}
	return p
}

func (p *runningPackage) end(test string) {
	delete(p.startTimes, test)
	delete(p.output, test)
	p.endedTests++
}

// say prints a line for each running package with its top-level tests.
func (r *report) say() {
	now := r.now()
	for _, name := range slices.Sorted(maps.Keys(r.packages)) {
		p := r.packages[name]
		var tests []string
		for _, test := range slices.Sorted(maps.Keys(p.startTimes)) {
			if !strings.Contains(test, "/") {
				tests = append(tests, fmt.Sprintf("%s for %s", test, now.Sub(p.startTimes[test]).Round(time.Second)))
			}
		}
		if len(tests) > 0 {
			r.show(
				fmt.Sprintf(
					"-- %s: %s: %s; %d have ended\n", now.Sub(r.startedAt).Round(time.Second), name,
					strings.Join(tests, ", "), p.endedTests,
				),
			)
		}
	}
	if len(r.packages) == 0 {
		r.show(
			fmt.Sprintf(
				"-- %s: nothing is running yet, or any more; packages are being compiled\n",
				now.Sub(r.startedAt).Round(time.Second),
			),
		)
	}
}

func (r *report) show(lines ...string) {
	for _, line := range lines {
		// A closed output must not stop the tests.
		_, _ = io.WriteString(r.out, line)
	}
}
