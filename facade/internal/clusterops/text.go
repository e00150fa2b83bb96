package clusterops

import (
	"encoding/json"
	"io"
	"strings"
	"unicode"
)

// WriteJSON writes a report for programs.
func WriteJSON(to io.Writer, report any) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(report)
}

// OneLine replaces characters of a text from outside that start a new line or control a terminal.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		default:
			return r
		}
	}, text)
}
