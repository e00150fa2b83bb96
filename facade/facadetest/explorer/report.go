package explorer

import (
	"fmt"
	"strings"
)

// Class is what is violated.
type Class string

// The classes.
const (
	// Lost: a handler came to its end in the uncut run, and does not here, or with another outcome.
	Lost Class = "lost"
	// Repeated: a handler is called more often than what went wrong explains. An attempt that was cut off, or whose
	// outcome could not be written, explains one more.
	Repeated Class = "repeated"
	// Concurrent: two attempts of one handler for one object run at once.
	Concurrent Class = "concurrent"
	// Different: an object has become another one than in the uncut run, is missing, or is one too many.
	Different Class = "different object"
	// OutsideDifferent: what is outside has become something else.
	OutsideDifferent Class = "different outside"
	// Overwritten: what somebody else wrote at the same time is gone. Also known as a lost update.
	Overwritten Class = "lost update"
	// Leaked: something is left over when all is deleted that people have created.
	Leaked Class = "leaked"
	// Restless: something goes on for ever.
	Restless Class = "restless"
	// Broken: the operator ends by itself, or the play fails.
	Broken Class = "broken"
	// Unrepeatable: two uncut runs differ, so no course can be compared with them.
	Unrepeatable Class = "unrepeatable"
)

// Violation is one thing that must not be, with the shortest history that shows it.
type Violation struct {
	Class Class
	// Subject is the handler or the object that it is about; empty for all.
	Subject string
	// Text says what is wrong, with the differences.
	Text string
	// Course is the name of the course for -explorer.course.
	Course string
	// Courses is how many show it.
	Courses int
	// History is what happened on the course, one line for each event.
	History []string
}

// Report is what an exploration has found.
type Report struct {
	// Violations are the first that were found of each class and subject; none is good.
	Violations []Violation
	// Played is how many courses were played beside the uncut runs, Possible how many there are with one cut and one
	// disturbance, Points where it can be cut.
	Played, Possible, Points int
	// Test is the name of the test.
	Test string
	// Seed is what the choice of the courses depends on.
	Seed uint64
}

// String is the report for people: what one course shows stands together, above its history.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.summary())
	told := map[string]bool{}
	for _, first := range r.Violations {
		if told[first.Course] {
			continue
		}
		told[first.Course] = true
		b.WriteString("\n")
		for _, v := range r.Violations {
			if v.Course == first.Course {
				b.WriteString(v.heading())
			}
		}
		fmt.Fprintf(&b, "   %s\n", command(r.Test, first.Course))
		for _, line := range first.History {
			fmt.Fprintf(&b, "   %s\n", line)
		}
	}
	return b.String()
}

// command plays a course again.
func command(test, course string) string {
	return fmt.Sprintf("go test -run '^%s$' -explorer.course='%s'", test, course)
}

// heading is a violation without its history.
func (v Violation) heading() string {
	subject := ""
	if v.Subject != "" {
		subject = ": " + v.Subject
	}
	seen := "though nothing went wrong"
	if v.Course != "uncut" {
		seen = fmt.Sprintf("on %d courses", v.Courses)
	}
	return fmt.Sprintf("%s%s, seen %s\n%s\n", strings.ToUpper(string(v.Class)), subject, seen, indented(v.Text))
}

func (r *Report) summary() string {
	found := "nothing is wrong"
	if n := len(r.Violations); n > 0 {
		found = fmt.Sprintf("%d things are wrong", n)
	}
	if r.Played == 0 {
		return fmt.Sprintf("explorer: %s though nothing was cut, so nothing is", found)
	}
	return fmt.Sprintf("explorer: %s; %d courses were played, of %d with one cut and one disturbance, for %d points; "+
		"the seed is %d", found, r.Played, r.Possible, r.Points, r.Seed)
}

func indented(text string) string { return "   " + strings.ReplaceAll(text, "\n", "\n   ") }

// mostLines is how much of a history is told before and after the first thing that goes wrong.
const mostLines = 20

// history is what is worth telling.
func (r *run) history(class Class) (lines []string) {
	middle := len(r.lines)
	for i, l := range r.lines {
		if class == Restless || class == Broken { // how it ended
			break
		}
		if strings.HasPrefix(l.what, "KILLED") || l.who == "the API" {
			middle = i
			break
		}
	}
	first, last := max(0, middle-mostLines), min(len(r.lines), middle+mostLines)
	if first > 0 {
		lines = append(lines, fmt.Sprintf("… %d lines before", first))
	}
	for _, l := range r.lines[first:last] {
		lines = append(lines, l.String())
	}
	if last < len(r.lines) {
		lines = append(lines, fmt.Sprintf("… %d lines after", len(r.lines)-last))
	}
	return lines
}
