package jsontext

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// scanString returns the text between the quotes of the string at a position, and whether it has escapes. The position
// after the string is zero if the string does not end, has control characters, or is not UTF-8.
func scanString(text []byte, at int) (raw []byte, escapes bool, after int) {
	if after = SkipString(text, at); after == 0 {
		return nil, false, 0
	}
	raw = text[at+1 : after-1]
	return raw, bytes.IndexByte(raw, '\\') >= 0, ifPlain(isPrintable(raw), after)
}

// shortStringLength is the length of most strings. Searching a longer one with IndexByte is faster than a loop.
const shortStringLength = 24

// SkipString returns the position after the string whose opening quote is at a position, and zero if the string does
// not end.
func SkipString(text []byte, at int) int {
	end := min(at+shortStringLength, len(text))
	for at++; at < end; at++ {
		switch text[at] {
		// The next character belongs to the escape, so it cannot end the string.
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	// The rest is searched for quotes. A quote after an odd number of backslashes is escaped.
	for begin := at; at < len(text); {
		length := bytes.IndexByte(text[at:], '"')
		if length < 0 {
			break
		}
		if at += length + 1; !endsInEscape(text[begin : at-1]) {
			return at
		}
	}
	return 0
}

// endsInEscape reports whether the text ends with an odd number of backslashes, so that the next character belongs to
// an escape.
func endsInEscape(text []byte) (odd bool) {
	for end := len(text); end > 0 && text[end-1] == '\\'; end-- {
		odd = !odd
	}
	return odd
}

// isPrintable reports whether the text has no control characters and is UTF-8.
func isPrintable(text []byte) bool {
	const spaces, highest = 0x2020202020202020, 0x8080808080808080
	rest := text
	for len(rest) >= 8 {
		// Eight bytes are checked at once. Subtracting a space from a control character borrows and so sets its highest
		// bit; bytes beyond ASCII have it already. A borrow can also reach the next byte, which only leads to the slow
		// check.
		eight := binary.LittleEndian.Uint64(rest)
		if (eight|(eight-spaces))&highest != 0 {
			break
		}
		rest = rest[8:]
	}
	others := false
	for _, c := range rest {
		if c < ' ' {
			return false
		}
		others = others || c >= utf8.RuneSelf
	}
	return !others || utf8.Valid(rest)
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
