package namespaces

import (
	"fmt"
	"strings"
)

// Expression says which names are in the scope, as a boolean expression with the operators !, && and ||, as CEL has
// them. Names are matched by regular expressions of RE2, each of which match renders as one operand.
func (s Scope) Expression(match func(expression string) string) string {
	expression := "true"
	if len(s.Served) > 0 {
		expression = s.served().expression(match)
	}
	if len(s.Excluded) > 0 {
		expression = "(" + expression + " && !" + s.Excluded.expression(match) + ")"
	}
	return expression
}

func (p Patterns) expression(match func(expression string) string) string {
	all := []string{"false"}
	for _, one := range p {
		all = append(all, one.asExpression(match))
	}
	return "(" + strings.Join(all, " || ") + ")"
}

// asExpression repeats what [Pattern.Matches] does.
func (p Pattern) asExpression(match func(expression string) string) string {
	if p.expression != nil {
		return match("^(?:" + p.text + ")$")
	}
	first, matched := "", ""
	for i, g := range p.globs {
		hit := match(g.regexp())
		switch {
		case i == 0:
			first, matched = hit, hit
		case g.negated:
			matched = "(" + matched + " && !" + hit + ")"
		default:
			matched = "(" + matched + " || " + first + " && " + hit + ")"
		}
	}
	return matched
}

// regexp is the glob as a regular expression. Characters are written by their numbers, so none has to be escaped.
func (g glob) regexp() string {
	text := strings.Builder{}
	for i := 0; i < len(g.pattern); i++ {
		switch char := g.pattern[i]; {
		case char == '*':
			text.WriteString("(?s:.*)")
		case char == '?':
			text.WriteString("(?s:.)")
		case char == '[' && classEnd(g.pattern[i:]) > 0:
			end := i + classEnd(g.pattern[i:])
			text.WriteString(classRegexp(g.pattern[i+1 : end]))
			i = end
		default:
			text.WriteString(character(char))
		}
	}
	return "^" + text.String() + "$"
}

// classRegexp repeats what matchClass does. A class without members, of which a range is from a character to an earlier
// one, has none of the characters.
func classRegexp(members []rune) string {
	negated := members[0] == '!'
	if negated {
		members = members[1:]
	}
	text := ""
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
	const every = `\x{0}-\x{10FFFF}`
	switch {
	case negated && text == "":
		return "[" + every + "]"
	case negated:
		return "[^" + text + "]"
	case text == "":
		return "[^" + every + "]"
	default:
		return "[" + text + "]"
	}
}

func character(one rune) string { return fmt.Sprintf(`\x{%X}`, one) }
