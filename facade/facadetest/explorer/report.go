package explorer

import (
	"fmt"
	"strings"
)

// Report is the result of an exploration.
type Report struct {
	// Violations has one entry for each class and subject. It is empty if everything is correct.
	Violations []Violation
	// Played is the number of courses beside the uncut runs. Possible is the number of courses with one cut and one
	// disturbance. Points is the number of points of the uncut run.
	Played, Possible, Points int
	// Test is the name of the test.
	Test string
	// Seed is the seed with which the courses were chosen.
	Seed uint64
}

// String returns the report as text. Violations of the same course are printed together, followed by its history.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.summaryLine())
	told := map[string]bool{}
	for _, first := range r.Violations {
		if told[first.Course] {
			continue
		}
		told[first.Course] = true
		b.WriteString("\n")
		for _, v := range r.Violations {
			if v.Course == first.Course {
				b.WriteString(v.headingText())
			}
		}
		fmt.Fprintf(&b, "   %s\n", replayCommand(r.Test, first.Course))
		for _, line := range first.History {
			fmt.Fprintf(&b, "   %s\n", line)
		}
	}
	return b.String()
}

// replayCommand returns the command that plays the course again.
func replayCommand(test, course string) string {
	return fmt.Sprintf("go test -run '^%s$' -explorer.course='%s'", test, course)
}

// headingText returns the description of a violation without its history.
func (v Violation) headingText() string {
	subject := ""
	if v.Subject != "" {
		subject = ": " + v.Subject
	}
	seen := "though nothing went wrong"
	if v.Course != "uncut" {
		seen = fmt.Sprintf("on %d courses", v.Courses)
	}
	return fmt.Sprintf("%s%s, seen %s\n%s\n", strings.ToUpper(string(v.Class)), subject, seen, indentText(v.Text))
}

// summaryLine returns the first line of the report.
func (r *Report) summaryLine() string {
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

// indentText indents each line of a text.
func indentText(text string) string { return "   " + strings.ReplaceAll(text, "\n", "\n   ") }

// maxContextLines limits the lines of a history before and after the first trouble.
const maxContextLines = 20

// historyLines returns the lines around the first trouble, as text.
func (r *run) historyLines(class Class) (lines []string) {
	// The default is the end of the history.
	middle := len(r.lines)
	for i, l := range r.lines {
		if class == Restless || class == Broken { // their cause is at the end
			break
		}
		if strings.HasPrefix(l.text, "KILLED") || l.actor == "the API" {
			middle = i
			break
		}
	}
	first, last := max(0, middle-maxContextLines), min(len(r.lines), middle+maxContextLines)
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
