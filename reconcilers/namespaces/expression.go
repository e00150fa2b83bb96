package namespaces

import "strings"

// MatchExpression returns a boolean expression for the names in the scope, with the operators !, && and || of CEL. The
// function match renders one operand: it gets a regular expression of RE2 that a name must match.
func (s NamespaceRule) MatchExpression(match func(expression string) string) string {
	expression := "true"
	if len(s.Served) > 0 {
		expression = s.effectivePatterns().matchExpression(match)
	}
	if len(s.Excluded) > 0 {
		expression = "(" + expression + " && !" + s.Excluded.matchExpression(match) + ")"
	}
	return expression
}

// matchExpression is true if any of the patterns matches. Without patterns it is false.
func (p Patterns) matchExpression(match func(expression string) string) string {
	all := []string{"false"}
	for _, one := range p {
		all = append(all, one.matchExpression(match))
	}
	return "(" + strings.Join(all, " || ") + ")"
}

// matchExpression renders the algorithm of [NamespacePattern.MatchesName]. Both must be changed together.
func (p NamespacePattern) matchExpression(match func(expression string) string) string {
	if p.expression != nil {
		// The group keeps alternatives of the expression between the anchors.
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
