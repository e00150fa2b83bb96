package console

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// printable tells whether a character can do no harm wherever the text is shown: it neither moves the cursor, nor ends
// a line, nor turns the direction of writing.
func printable(r rune) bool { return unicode.IsPrint(r) }

// quote gives a text on one line, in quotes if it could be taken for more than one value, which control characters
// always could.
func quote(text string) string {
	special := func(r rune) bool { return r == '"' || r == '=' || unicode.IsSpace(r) || !printable(r) }
	if text == "" || !utf8.ValidString(text) || strings.ContainsFunc(text, special) {
		return strconv.Quote(text)
	}
	return text
}

// onOneLine gives a text without what could end a line or move the cursor.
func onOneLine(text string) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !printable(r) }) < 0 {
		return text
	}
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

// quoteInBrackets gives a text that does not end the brackets around it.
func quoteInBrackets(text string) string {
	if strings.ContainsAny(text, "[]") {
		return strconv.Quote(text)
	}
	return quote(text)
}

// indent gives a text of any number of lines, of which all but the first begin with a tab.
func indent(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var safe strings.Builder
	for at, r := range text {
		switch {
		case r == '\n':
			safe.WriteString("\n\t")
		case r == utf8.RuneError && !strings.HasPrefix(text[at:], string(utf8.RuneError)):
			fmt.Fprintf(&safe, `\x%02x`, text[at])
		case r == '\t' || printable(r):
			safe.WriteRune(r)
		default:
			safe.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return safe.String()
}

// escapeJSON gives the same JSON with nothing but printable characters in it. Others stand in its strings alone,
// where they may be escaped.
func escapeJSON(data []byte) []byte {
	plain := func(r rune) bool { return r < utf8.RuneSelf && printable(r) }
	text := string(data)
	if strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return data
	}
	safe := make([]byte, 0, len(data)+16)
	for _, r := range text {
		if printable(r) {
			safe = utf8.AppendRune(safe, r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			safe = fmt.Appendf(safe, `\u%04x`, unit)
		}
	}
	return safe
}
