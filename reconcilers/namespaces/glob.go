package namespaces

import "slices"

// glob is one of the parts of a pattern.
type glob struct {
	pattern []rune
	negated bool
}

// matches compares the whole name.
func (g glob) matches(name []rune) bool { return matchGlob(g.pattern, name) }

// matchGlob goes back to the last star only: what an earlier one could take more, the last one can take as well. So the
// time is that of one pattern's length for each character of the name.
func matchGlob(pattern, name []rune) bool {
	at, star, resume := 0, -1, 0
	for i := 0; i < len(name); {
		if at < len(pattern) && pattern[at] == '*' {
			star, resume = at, i
			at++
			continue
		}
		if length, ok := matchOne(pattern[at:], name[i]); ok {
			at, i = at+length, i+1
			continue
		}
		if star < 0 {
			return false
		}
		resume++
		at, i = star+1, resume
	}
	for at < len(pattern) && pattern[at] == '*' {
		at++
	}
	return at == len(pattern)
}

// matchOne compares one character with the beginning of a pattern, and gives the length of that.
func matchOne(pattern []rune, char rune) (length int, ok bool) {
	if len(pattern) == 0 {
		return 0, false
	}
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		if end := classEnd(pattern); end > 0 {
			return end + 1, matchClass(pattern[1:end], char)
		}
	}
	return 1, pattern[0] == char
}

// classEnd is where the bracket closes; 0 for one that does not, and so means itself. A bracket that closes is a member
// of the class if it comes first.
func classEnd(pattern []rune) int {
	from := 1
	if from < len(pattern) && pattern[from] == '!' {
		from++
	}
	from++ // there is at least one member
	if from >= len(pattern) {
		return 0
	}
	if at := slices.Index(pattern[from:], ']'); at >= 0 {
		return from + at
	}
	return 0
}

// matchClass looks for a character among the members of a class. A range from a character to an earlier one has none.
func matchClass(members []rune, char rune) bool {
	negated := members[0] == '!'
	if negated {
		members = members[1:]
	}
	for i := 0; i < len(members); i++ {
		if i+2 < len(members) && members[i+1] == '-' {
			if members[i] <= char && char <= members[i+2] {
				return !negated
			}
			i += 2
			continue
		}
		if members[i] == char {
			return !negated
		}
	}
	return negated
}
