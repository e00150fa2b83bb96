package namespaces

import (
	"fmt"
	"regexp"
)

// glob is one part of a pattern. It has the syntax of Python's fnmatch, which Kopf uses.
type glob struct {
	expression *regexp.Regexp // matches whole names
	negated    bool
}

// globParts matches a class in brackets, or one character. As in fnmatch, an unclosed bracket is an ordinary character,
// and a closing bracket at the beginning of a class is a member of it.
var globParts = regexp.MustCompile(`(?s)\[(!\]|\]|![^\]]|[^!\]])[^\]]*\]|.`)

// isClass reports whether a part is a class. A single bracket is an ordinary character.
func isClass(part string) bool { return len(part) > 1 && part[0] == '[' }

// newGlob compiles a glob. It writes characters as hexadecimal numbers, so that no character needs escaping.
func newGlob(pattern string, negated bool) glob {
	text := globParts.ReplaceAllStringFunc(pattern, func(part string) string {
		switch {
		case part == "*":
			return "(?s:.*)"
		case part == "?":
			return "(?s:.)"
		case isClass(part):
			return classExpression([]rune(part[1 : len(part)-1]))
		default:
			return escapedCharacter([]rune(part)[0])
		}
	})
	return glob{regexp.MustCompile("^" + text + "$"), negated}
}

// classExpression returns the expression for the members of a class. A range with its ends in the wrong order does not
// have members, so a class can be empty.
func classExpression(members []rune) string {
	// RE2 does not accept an empty class. \P{Any} matches no character, so it can begin every class.
	text := `[\P{Any}`
	if members[0] == '!' {
		text, members = `[^\P{Any}`, members[1:]
	}
	for i := 0; i < len(members); i++ {
		if i+2 < len(members) && members[i+1] == '-' {
			if members[i] <= members[i+2] {
				text += escapedCharacter(members[i]) + "-" + escapedCharacter(members[i+2])
			}
			i += 2
			continue
		}
		text += escapedCharacter(members[i])
	}
	return text + "]"
}

// escapedCharacter returns the escaped form of a character, which is valid inside and outside of classes.
func escapedCharacter(one rune) string { return fmt.Sprintf(`\x{%X}`, one) }
