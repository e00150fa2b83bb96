package console

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// isPrintable reports whether a character is harmless wherever the text is shown: it does not move the cursor, end a
// line, or change the direction of writing.
func isPrintable(r rune) bool { return unicode.IsPrint(r) }

// quoteIfNeeded returns a text on one line. It is quoted if it contains spaces, control characters or separators, which could
// make it look like several values.
func quoteIfNeeded(text string) string {
	special := func(r rune) bool { return r == '"' || r == '=' || unicode.IsSpace(r) || !isPrintable(r) }
	if text == "" || !utf8.ValidString(text) || strings.ContainsFunc(text, special) {
		return strconv.Quote(text)
	}
	return text
}

// escapeControls escapes all characters that could end the line or move the cursor.
func escapeControls(text string) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !isPrintable(r) }) < 0 {
		return text
	}
	// Only the escapes are needed, not the quotes.
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

// quoteInBrackets returns a text that cannot close the brackets around it.
func quoteInBrackets(text string) string {
	if strings.ContainsAny(text, "[]") {
		return strconv.Quote(text)
	}
	return quoteIfNeeded(text)
}

// indentLines returns a text of several lines in which all but the first begin with a tab. So none of them can look like a
// line of the log.
func indentLines(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var safe strings.Builder
	for at, r := range text {
		switch {
		case r == '\n':
			safe.WriteString("\n\t")
		// An invalid byte is shown as its hexadecimal value. A real replacement character is kept.
		case r == utf8.RuneError && !strings.HasPrefix(text[at:], string(utf8.RuneError)):
			fmt.Fprintf(&safe, `\x%02x`, text[at])
		case r == '\t' || isPrintable(r):
			safe.WriteRune(r)
		default:
			safe.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return safe.String()
}

// escapeJSON returns the same JSON with only printable characters. Other characters occur only inside strings, where
// they can be escaped.
func escapeJSON(data []byte) []byte {
	plain := func(r rune) bool { return r < utf8.RuneSelf && isPrintable(r) }
	text := string(data)
	// Most lines need no copy.
	if strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return data
	}
	safe := make([]byte, 0, len(data)+16)
	for _, r := range text {
		if isPrintable(r) {
			safe = utf8.AppendRune(safe, r)
			continue
		}
		// JSON escapes characters beyond 16 bits as surrogate pairs.
		for _, unit := range utf16.Encode([]rune{r}) {
			safe = fmt.Appendf(safe, `\u%04x`, unit)
		}
	}
	return safe
}
