package documents

import (
	"regexp"
	"strings"
)

// Grid is a table of a document.
type Grid struct {
	// Section is the heading above the table.
	Section string
	// Head has the cells of the first line, Rows those of the lines below the separator.
	Head []string
	Rows [][]string
}

// separator is the line between the head and the rows of a table.
var separator = regexp.MustCompile(`^\|(:?-+:?\|)+$`)

// Grids returns the tables of a document.
func Grids(document string) (all []Grid) {
	section, head, open := "", "", false
	for line := range strings.Lines(WithoutBlocks(document)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "#"):
			section, open = strings.TrimSpace(strings.TrimLeft(line, "#")), false
		case !strings.HasPrefix(line, "|"):
			open = false
		case separator.MatchString(line):
			all, open = append(all, Grid{Section: section, Head: cells(head)}), true
		case open:
			last := &all[len(all)-1]
			last.Rows = append(last.Rows, cells(line))
		}
		head = line
	}
	return all
}

// cells returns the texts between the bars of a line. A bar after a backslash is a part of its cell.
func cells(line string) (all []string) {
	const bar = "\x00"
	line = strings.ReplaceAll(line, `\|`, bar)
	for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
		all = append(all, strings.TrimSpace(strings.ReplaceAll(cell, bar, "|")))
	}
	return all
}

// Spans returns the texts in backquotes.
func Spans(text string) (all []string) {
	for _, span := range codeSpan.FindAllString(text, -1) {
		all = append(all, strings.Trim(span, "`"))
	}
	return all
}
