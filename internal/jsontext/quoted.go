package jsontext

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// scanString returns the text between the quotes of the string at a position, and whether it has escapes. The position
// after the string is zero if the string does not end, has control characters, or is not UTF-8.
func scanString(text []byte, at int) (raw []byte, escapes bool, after int) {
	isASCII := true
	for end := at + 1; end < len(text); end++ {
		switch c := text[end]; {
		case c == '"':
			raw = text[at+1 : end]
			return raw, escapes, ifPlain(isASCII || utf8.Valid(raw), end+1)
		// The next character belongs to the escape, so it cannot end the string. Unescaping checks it.
		case c == '\\':
			escapes = true
			end++
		case c < ' ':
			return nil, false, 0
		case c >= utf8.RuneSelf:
			isASCII = false
		}
	}
	return nil, false, 0
}

// SkipString returns the position after the string whose opening quote is at a position, and zero if the string does
// not end. It accepts any characters.
func SkipString(text []byte, at int) int {
	quote := -1 // the next one after at; it is searched once, so that the time is linear
	for at++; at < len(text); {
		if quote < at {
			next := bytes.IndexByte(text[at:], '"')
			if next < 0 {
				return 0
			}
			quote = at + next
		}
		escape := bytes.IndexByte(text[at:quote], '\\')
		if escape < 0 {
			return quote + 1
		}
		at += escape + 2
	}
	return 0
}

// unescapeString returns the decoded form of a string. The result is valid until the next call. It returns false for
// unknown escapes and for surrogates, which the other decoder handles.
func (d *decoder) unescapeString(raw []byte, escapes bool) (found []byte, plain bool) {
	if !escapes {
		return raw, true
	}
	// The buffer is reused: the caller has copied the former result.
	d.runes = d.runes[:0]
	for {
		at := bytes.IndexByte(raw, '\\')
		if at < 0 {
			d.runes = append(d.runes, raw...)
			return d.runes, true
		}
		d.runes = append(d.runes, raw[:at]...)
		found, length := decodeEscape(raw[at:])
		if length == 0 {
			return nil, false
		}
		d.runes, raw = utf8.AppendRune(d.runes, found), raw[at+length:]
	}
}

// decodeEscape decodes the escape at the beginning of the text, and returns its length. The length is zero if the
// escape is invalid or a surrogate.
func decodeEscape(text []byte) (found rune, length int) {
	switch text[1] {
	case '"', '\\', '/':
		return rune(text[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		if len(text) < 6 {
			return 0, 0
		}
		code, err := strconv.ParseUint(string(text[2:6]), 16, 16)
		if found = rune(code); err != nil || utf16.IsSurrogate(found) { //nolint:gosec // it has 16 bits
			return 0, 0
		}
		return found, 6
	}
	return 0, 0
}

// maxCachedKeyLength is the longest name of a field that is cached, in bytes. Longer keys rarely occur twice.
const maxCachedKeyLength = 32

// keyCache is a cache of decoded keys, so that equal keys of all objects share one string. A key replaces another one
// with the same hash.
type keyCache [256]string

// internKey returns the key as a string, from the cache if possible.
func (n *keyCache) internKey(name []byte) string {
	if len(name) == 0 || len(name) > maxCachedKeyLength {
		return string(name)
	}
	hash := len(name)
	for _, c := range name {
		// The hash need not be good: a collision costs one allocation.
		hash = hash*31 + int(c)
	}
	known := &n[hash&(len(n)-1)]
	if *known != string(name) {
		*known = string(name)
	}
	return *known
}
