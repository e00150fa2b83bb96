package jsontext

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// quoted is what stands between the quotes, of which the first one is here, and whether it has escapes. The place after
// them is zero if there is no second one, or if there is something between them that may not be there.
func quoted(text []byte, at int) (raw []byte, escapes bool, after int) {
	if after = PastString(text, at); after == 0 {
		return nil, false, 0
	}
	raw = text[at+1 : after-1]
	return raw, bytes.IndexByte(raw, '\\') >= 0, ifPlain(printable(raw), after)
}

// short is how long most strings are: only for longer ones it pays to have the rest searched.
const short = 24

// PastString returns the place after the string whose first quote is here; zero if it does not end.
func PastString(text []byte, at int) int {
	end := min(at+short, len(text))
	for at++; at < end; at++ {
		switch text[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	for begin := at; at < len(text); {
		length := bytes.IndexByte(text[at:], '"')
		if length < 0 {
			break
		}
		if at += length + 1; !escaped(text[begin : at-1]) {
			return at
		}
	}
	return 0
}

// escaped tells whether what follows a text belongs to an escape at its end.
func escaped(text []byte) (odd bool) {
	for end := len(text); end > 0 && text[end-1] == '\\'; end-- {
		odd = !odd
	}
	return odd
}

// printable tells whether the text has no control characters, and is UTF-8.
func printable(text []byte) bool {
	const spaces, highest = 0x2020202020202020, 0x8080808080808080
	rest := text
	for len(rest) >= 8 {
		// What is below a space borrows of the byte before it, and so reaches the highest bit, as all beyond ASCII do.
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

// unescaped gives what raw stands for, which is lent until the next call. Halves of a pair of surrogates are not plain.
func (d *decoder) unescaped(raw []byte, escapes bool) (found []byte, plain bool) {
	if !escapes {
		return raw, true
	}
	d.runes = d.runes[:0]
	for {
		at := bytes.IndexByte(raw, '\\')
		if at < 0 {
			d.runes = append(d.runes, raw...)
			return d.runes, true
		}
		d.runes = append(d.runes, raw[:at]...)
		found, length := escape(raw[at:])
		if length == 0 {
			return nil, false
		}
		d.runes, raw = utf8.AppendRune(d.runes, found), raw[at+length:]
	}
}

// escape is what stands for the escape that the text begins with, and its length; zero if there is no such escape.
func escape(text []byte) (found rune, length int) {
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

// longest is how long the names of fields are at most: what is longer is hardly found twice.
const longest = 32

// names are strings that were decoded before, so that one string serves for all that are the same.
type names [256]string

func (n *names) of(name []byte) string {
	if len(name) == 0 || len(name) > longest {
		return string(name)
	}
	hash := len(name)
	for _, c := range name {
		hash = hash*31 + int(c)
	}
	known := &n[hash&(len(n)-1)]
	if *known != string(name) {
		*known = string(name)
	}
	return *known
}
