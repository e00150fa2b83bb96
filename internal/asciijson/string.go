package asciijson

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// hex has lower-case digits, as Python writes them.
const hex = "0123456789abcdef"

// shortEscapes has the characters with a short escape, such as \n. Other control characters are written by their code.
var shortEscapes = [utf8.RuneSelf]byte{'"': '"', '\\': '\\', '\n': 'n', '\r': 'r', '\t': 't', '\b': 'b', '\f': 'f'}

// AppendString appends a string as a JSON literal in ASCII. Other characters are written as "\uXXXX", and those above
// the basic plane as a surrogate pair. "<", ">" and "&" are not escaped. Each byte of invalid UTF-8 is written as
// U+FFFD, the replacement character.
func AppendString(text []byte, value string) []byte {
	text = append(text, '"')
	// The start of the current run of characters without escapes, which is copied at once.
	plain := 0
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

// isPlain reports whether a byte stands for itself in a literal. DEL (0x7f) does not; Python escapes it, too.
func isPlain(char byte) bool {
	return ' ' <= char && char <= '~' && char != '"' && char != '\\'
}

// appendEscaped appends the escape of one character.
func appendEscaped(text []byte, char rune) []byte {
	switch {
	case char < utf8.RuneSelf && shortEscapes[char] != 0:
		return append(text, '\\', shortEscapes[char])
	case utf16.RuneLen(char) == 1:
		return appendCodeEscape(text, char)
	}
	high, low := utf16.EncodeRune(char)
	return appendCodeEscape(appendCodeEscape(text, high), low)
}

// appendCodeEscape appends a 16-bit code as "\uXXXX".
func appendCodeEscape(text []byte, code rune) []byte {
	return append(text, '\\', 'u', hex[code>>12&0xF], hex[code>>8&0xF], hex[code>>4&0xF], hex[code&0xF])
}

// CutText shortens a text so that its JSON takes at most limit bytes, without the quotes and without the ellipsis that
// marks the cut. A text that is cut becomes valid UTF-8.
func CutText(text string, limit int) string {
	// Even if each byte needs the longest escape, the text fits. This is the usual case.
	if len(text) <= limit/longestEscape {
		return text
	}
	length := 0
	// Room for a surrogate pair.
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

// longestEscape is the largest number of JSON bytes for one byte of text: "\uXXXX".
const longestEscape = 6
