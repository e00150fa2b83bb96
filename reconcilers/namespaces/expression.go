package namespaces

import "strings"

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
		hit := match(g.expression.String())
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
