package jsontext

// RawMember is one member of a JSON object in a text, or one element of a list, which does not have a key.
type RawMember struct {
	// Key is the text between the quotes, with its escapes, and Value is the text of the value. Both are parts of the
	// text.
	Key, Value []byte
	// Start is the position of the member, which is the quote of its key, and End is the position after it.
	Start, End int
}

// EachMember calls show for every member of an object in their order. It returns false if the text is not an object, or
// where it stops because the text is malformed. It is not a validator: it does not parse values or read beyond the
// object.
func EachMember(text []byte, show func(RawMember)) (whole bool) {
	return eachPart(text, '{', '}', show)
}

// EachElement is like [EachMember] for the elements of a list.
func EachElement(text []byte, show func(RawMember)) (whole bool) {
	return eachPart(text, '[', ']', show)
}

// eachPart calls show for every member or element between the brackets.
func eachPart(text []byte, opening, closing byte, show func(RawMember)) (whole bool) {
	at := skipSpace(text, 0)
	if at >= len(text) || text[at] != opening {
		return false
	}
	if at = skipSpace(text, at+1); at < len(text) && text[at] == closing {
		return true
	}
	for at < len(text) {
		m := RawMember{Start: at}
		if opening == '{' {
			if at = m.readKey(text); at == 0 {
				return false
			}
		}
		if m.End = skipValue(text, at); m.End == 0 {
			return false
		}
		m.Value = text[at:m.End]
		show(m)
		switch at = skipSpace(text, m.End); {
		case at < len(text) && text[at] == closing:
			return true
		case at >= len(text) || text[at] != ',':
			return false
		}
		at = skipSpace(text, at+1)
	}
	return false
}

// readKey sets the key of the member that begins at its start, and returns the position of the value. It returns zero
// if there is no key with a colon.
func (m *RawMember) readKey(text []byte) (value int) {
	if text[m.Start] != '"' {
		return 0
	}
	end := SkipString(text, m.Start)
	colon := skipSpace(text, end)
	if end == 0 || colon >= len(text) || text[colon] != ':' {
		return 0
	}
	// Without the quotes.
	m.Key = text[m.Start+1 : end-1]
	return skipSpace(text, colon+1)
}

// skipSpace returns the position of the next character that is not white space.
func skipSpace(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
		at++
	}
	return at
}

// skipValue returns the position after the value at a position, and zero if there is no value or it does not end.
func skipValue(text []byte, at int) int {
	if at >= len(text) {
		return 0
	}
	switch text[at] {
	case '"':
		return SkipString(text, at)
	case '{', '[':
		return skipBrackets(text, at)
	}
	// Numbers and literals end at the next delimiter. Their characters are not checked.
	begin := at
	for at < len(text) {
		switch text[at] {
		case ',', '}', ']', ':', '"', ' ', '\n', '\t', '\r':
			if at == begin {
				return 0
			}
			return at
		}
		at++
	}
	return at
}

// skipBrackets returns the position after an object or a list. It counts brackets of both kinds together, and skips
// strings, which can contain brackets.
func skipBrackets(text []byte, at int) int {
	for depth := 0; at < len(text); {
		switch text[at] {
		case '"':
			if at = SkipString(text, at); at == 0 {
				return 0
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if at++; depth == 0 {
			return at
		}
	}
	return 0
}
