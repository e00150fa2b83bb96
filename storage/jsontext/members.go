package jsontext

// Member is one member of a JSON object in a text, or one element of a list, which has no key.
type Member struct {
	// Key is what stands between the quotes, with its escapes, and Value the text of the value: both are parts of the
	// text.
	Key, Value []byte
	// At is where the member begins in the text, with the quote of its key, and End the place after it.
	At, End int
}

// Members shows every member of an object in their order, without looking into their values. It returns false for a
// text that is no object, or where it is not well-formed; nobody looks into what comes after that, or into values.
func Members(text []byte, show func(Member)) (whole bool) {
	at := space(text, 0)
	if at >= len(text) || text[at] != '{' {
		return false
	}
	for at = space(text, at+1); at < len(text) && text[at] == '"'; {
		m := Member{At: at}
		if at = PastString(text, at); at == 0 {
			return false
		}
		m.Key = text[m.At+1 : at-1]
		if at = space(text, at); at >= len(text) || text[at] != ':' {
			return false
		}
		begin := space(text, at+1)
		if m.End = past(text, begin); m.End == 0 {
			return false
		}
		m.Value = text[begin:m.End]
		show(m)
		if at = space(text, m.End); at < len(text) && text[at] == ',' {
			at = space(text, at+1)
		}
	}
	return at < len(text) && text[at] == '}'
}

// Elements is Members for a list.
func Elements(text []byte, show func(Member)) (whole bool) {
	at := space(text, 0)
	if at >= len(text) || text[at] != '[' {
		return false
	}
	for at = space(text, at+1); at < len(text) && text[at] != ']'; {
		m := Member{At: at, End: past(text, at)}
		if m.End == 0 {
			return false
		}
		m.Value = text[at:m.End]
		show(m)
		if at = space(text, m.End); at < len(text) && text[at] == ',' {
			at = space(text, at+1)
		}
	}
	return at < len(text)
}

// space is the place of the next character that is no white space.
func space(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
		at++
	}
	return at
}

// past is the place after the value that begins here; 0 if there is none, or if the text ends within it.
func past(text []byte, at int) int {
	if at >= len(text) {
		return 0
	}
	switch text[at] {
	case '"':
		return PastString(text, at)
	case '{', '[':
		return pastBrackets(text, at)
	}
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

func pastBrackets(text []byte, at int) int {
	for depth := 0; at < len(text); {
		switch text[at] {
		case '"':
			if at = PastString(text, at); at == 0 {
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
