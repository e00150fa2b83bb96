package asciijson

import (
	"strings"
	"unicode/utf8"
)

const hex = "0123456789abcdef"

// The characters with a form of their own after the backslash; all other control characters are written by their code.
var short = [utf8.RuneSelf]byte{'"': '"', '\\': '\\', '\n': 'n', '\r': 'r', '\t': 't', '\b': 'b', '\f': 'f'}

// AppendString appends a string as a JSON literal in ASCII: all other characters are written as "\uXXXX", those above
// the basic plane as two of these (a surrogate pair). "<", ">" and "&" are written as they are. Broken UTF-8 is written
// as the replacement character, U+FFFD, one for each byte.
func AppendString(text []byte, value string) []byte {
	text = append(text, '"')
	plain := 0 // where the run of characters that stay as they are begins
	for i := 0; i < len(value); {
		if isPlain(value[i]) {
			i++
			continue
		}
		text = append(text, value[plain:i]...)
		char, size := utf8.DecodeRuneInString(value[i:])
		text = appendEscaped(text, char)
		i += size
		plain = i
	}
	text = append(text, value[plain:]...)
	return append(text, '"')
}

func isPlain(char byte) bool {
	return ' ' <= char && char <= '~' && char != '"' && char != '\\'
}

func appendEscaped(text []byte, char rune) []byte {
	switch {
	case char < utf8.RuneSelf && short[char] != 0:
		return append(text, '\\', short[char])
	case char < firstPaired:
		return appendCode(text, char)
	}
	char -= firstPaired
	return appendCode(appendCode(text, highSurrogate+char>>10), lowSurrogate+char&0x3FF)
}

// How UTF-16 writes what does not fit into 16 bits.
const (
	firstPaired   = 0x10000
	highSurrogate = 0xD800
	lowSurrogate  = 0xDC00
)

func appendCode(text []byte, code rune) []byte {
	return append(text, '\\', 'u', hex[code>>12&0xF], hex[code>>8&0xF], hex[code>>4&0xF], hex[code&0xF])
}

// Cut shortens a text so that no more than so many bytes of JSON are its own, and ends it with an ellipsis then. It is
// made valid UTF-8 in that case.
func Cut(text string, limit int) string {
	if len(text) <= limit/longestEscape {
		return text
	}
	length := 0
	var escaped [2 * longestEscape]byte
	for i := 0; i < len(text); {
		size, width := 1, 1
		if !isPlain(text[i]) {
			var char rune
			char, size = utf8.DecodeRuneInString(text[i:])
			width = len(appendEscaped(escaped[:0], char))
		}
		if length += width; length > limit {
			return strings.ToValidUTF8(text[:i], "") + "…"
		}
		i += size
	}
	return text
}

// longestEscape is how many bytes of JSON at most are made of one byte.
const longestEscape = 6
