package session

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// unquotedWord matches what a shell takes as it is.
var unquotedWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// show prints a command as people type it in the current folder.
func (s *Session) show(words ...string) {
	typed := make([]string, 0, len(words))
	for _, word := range words {
		word = fromHere(word)
		if !unquotedWord.MatchString(word) {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		typed = append(typed, word)
	}
	s.say("$ %s", strings.Join(typed, " "))
}

// fromHere makes an absolute path below the current folder relative.
func fromHere(word string) string {
	here, err := os.Getwd()
	if err != nil || !filepath.IsAbs(word) {
		return word
	}
	relative, err := filepath.Rel(here, word)
	if err != nil || !filepath.IsLocal(relative) {
		return word
	}
	return relative
}

// compare prints an expected expression, and the output that matched it.
func (s *Session) compare(expected, seen string) {
	shown := NewTranscript(s.Out, "expected | ")
	_, _ = shown.Write([]byte(expected + "\n"))
	shown = NewTranscript(s.Out, "seen     | ")
	_, _ = shown.Write([]byte(strings.TrimRight(seen, "\n") + "\n"))
}

// compareOutput is compare for expressions that the output of kubectl matches.
func (s *Session) compareOutput(expected []string, output string) {
	for _, expression := range expected {
		pattern, err := regexp.Compile(expression)
		if err != nil {
			continue // an invalid expression was reported before
		}
		seen := output
		for line := range strings.Lines(output) {
			if pattern.MatchString(line) {
				seen = line
				break
			}
		}
		s.compare(expression, seen)
	}
}
