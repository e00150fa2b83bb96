package jsontext

import "encoding/json"

// String is the text at a path of keys; empty if there is none. It decodes nothing else, and passes over the rest. Keys
// with escapes are not found.
func (o *Object) String(path ...string) (found string) {
	if o == nil {
		return ""
	}
	value := o.text
	if value == nil {
		return o.stringOfValue(path)
	}
	for _, key := range path {
		if value = field(value, key); value == nil {
			return ""
		}
	}
	if value[0] != '"' || json.Unmarshal(value, &found) != nil {
		return ""
	}
	return found
}

func (o *Object) stringOfValue(path []string) string {
	tree, _ := o.Value()
	var value any = tree
	for _, key := range path {
		mapping, _ := value.(map[string]any)
		value = mapping[key]
	}
	found, _ := value.(string)
	return found
}

// field is what stands under a key of an object; nil if the text is no object, or does not have it. As for decoders,
// the last one of several counts.
func field(text []byte, key string) (found []byte) {
	start := space(text, 0)
	if text[start] != '{' {
		return nil
	}
	for at := space(text, start+1); at < len(text) && text[at] == '"'; {
		name := text[at+1 : past(text, at)-1]
		at = space(text, past(text, at))
		begin := space(text, at+1) // after the colon
		at = past(text, begin)
		if string(name) == key {
			found = text[begin:at]
		}
		if at = space(text, at); at < len(text) && text[at] == ',' {
			at = space(text, at+1)
		}
	}
	return found
}

// space is the place of the next character that is no white space.
func space(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
		at++
	}
	return at
}

// past is the place after the value that begins here.
func past(text []byte, at int) int {
	switch text[at] {
	case '"':
		return pastString(text, at)
	case '{', '[':
		return pastBrackets(text, at)
	}
	for at < len(text) {
		switch text[at] {
		case ',', '}', ']', ' ', '\n', '\t', '\r':
			return at
		}
		at++
	}
	return at
}

func pastString(text []byte, at int) int {
	for at++; text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return at + 1
}

func pastBrackets(text []byte, at int) int {
	for depth := 0; ; {
		switch text[at] {
		case '"':
			at = pastString(text, at)
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
}
