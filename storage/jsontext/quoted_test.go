package jsontext_test

import (
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// positionAfterString steps through the string byte by byte, for comparison.
func positionAfterString(text string, at int) int {
	for at++; at < len(text); at++ {
		switch text[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return 0
}

// TestPastString shows that the end of a string is found for all endings of some characters, whatever is before them.
func TestPastString(t *testing.T) {
	endings := []string{""}
	for range 6 {
		for _, ending := range endings {
			endings = append(endings, ending+`a`, ending+`\`, ending+`"`)
		}
		endings = endings[len(endings)/4:]
	}
	for _, fill := range []string{"x", `\`, `\"`} {
		for length := range 30 {
			for _, ending := range endings {
				text := `["` + strings.Repeat(fill, length) + ending
				if got, want := jsontext.SkipString([]byte(text), 1), positionAfterString(text, 1); got != want {
					t.Fatalf("%s ends at %d, want %d", text, got, want)
				}
			}
		}
	}
}
