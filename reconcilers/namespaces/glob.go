package namespaces

import (
	"fmt"
	"regexp"
)

// glob is one of the parts of a pattern.
type glob struct {
	expression *regexp.Regexp // matches whole names
	negated    bool
}

// globParts matches a class in brackets, or one character. A bracket that is not closed is an ordinary character. A
// closing bracket at the beginning of a class is one of its members.
var globParts = regexp.MustCompile(`(?s)\[(!\]|\]|![^\]]|[^!\]])[^\]]*\]|.`)

func isClass(part string) bool { return len(part) > 1 && part[0] == '[' }

// newGlob compiles a glob. Characters are written by their numbers, so none has to be escaped.
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
			return character([]rune(part)[0])
		}
	})
	return glob{regexp.MustCompile("^" + text + "$"), negated}
}

// classExpression returns the expression for the members of a class. A range from a character to an earlier one has no
// members, so a class can be empty.
func classExpression(members []rune) string {
	text := `[\P{Any}` // no character, as RE2 has no empty class
	if members[0] == '!' {
		text, members = `[^\P{Any}`, members[1:]
	}
	for i := 0; i < len(members); i++ {
		if i+2 < len(members) && members[i+1] == '-' {
			if members[i] <= members[i+2] {
				text += character(members[i]) + "-" + character(members[i+2])
			}
			i += 2
			continue
		}
		text += character(members[i])
	}
	return text + "]"
}

func character(one rune) string { return fmt.Sprintf(`\x{%X}`, one) }
