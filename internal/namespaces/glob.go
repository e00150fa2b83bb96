package namespaces

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
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

// CheckPattern returns an error for a pattern that [ParsePattern] accepts but that is probably a mistake: the pattern
// cannot match any namespace, or one of its items after a comma has no effect.
func CheckPattern(text string) error {
	if strings.TrimSpace(text) == "" {
		return fmt.Errorf("%q is the name of no namespace; to serve the whole cluster, name none at all", text)
	}
	if !strings.ContainsAny(text, "!*?,[]") {
		if problems := validation.IsDNS1123Label(text); len(problems) > 0 {
			return fmt.Errorf("%q is not the name of a namespace: %s", text, problems[0])
		}
		return nil
	}
	// After the first item, an item without "!" only includes names again that an earlier item has excluded. So it is
	// an error if no earlier item excludes names.
	taken := strings.HasPrefix(strings.TrimSpace(text), "!")
	for i, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		negated := strings.HasPrefix(part, "!")
		if err := checkGlob(strings.TrimLeft(part, "!")); err != nil {
			return fmt.Errorf("%q is not a pattern of namespaces: %w", text, err)
		}
		taken = taken || negated
		if i > 0 && !taken {
			return fmt.Errorf("%q does not match the namespaces of %q: after a comma, a pattern with \"!\" excludes "+
				"namespaces, and later ones include some of those again; make it a pattern of its own", text, part)
		}
	}
	return nil
}

// checkGlob returns an error if the glob cannot match the name of a namespace. Names consist of lower case letters,
// digits and hyphens.
func checkGlob(pattern string) error {
	if pattern == "" {
		return errors.New("there is nothing before or after a comma, or after \"!\"")
	}
	for _, part := range globParts.FindAllString(pattern, -1) {
		switch char := []rune(part)[0]; {
		case isClass(part):
		case char == '[':
			return errors.New("a bracket is not closed")
		case char == '*' || char == '?' || char == '-', 'a' <= char && char <= 'z', '0' <= char && char <= '9':
		default:
			return fmt.Errorf("%q is in no name: these have lower case letters, digits and \"-\"", char)
		}
	}
	return nil
}
