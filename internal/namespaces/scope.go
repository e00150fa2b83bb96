package namespaces

import (
	"slices"
	"strings"
)

// NamespaceRule decides whether a namespace belongs to an operator. The zero value includes all namespaces.
type NamespaceRule struct {
	// Served restricts the operator to these namespaces; empty is the whole cluster.
	Served Patterns
	// NamedOnly ignores patterns that are not full names. It applies where namespaces are not listed.
	NamedOnly bool
	// Excluded removes namespaces from those.
	Excluded Patterns
	// Live is the current set, if it depends on labels. A nil or unknown set includes all names that the patterns
	// match.
	Live *LiveNamespaces
}

// IncludesNamespace reports whether the namespace is in the scope.
func (s NamespaceRule) IncludesNamespace(name string) bool {
	if s.Live != nil {
		if names, _ := s.Live.Current(); names != nil && !slices.Contains(names, name) {
			return false
		}
	}
	served := s.effectivePatterns()
	return (len(s.Served) == 0 || served.MatchesName(name)) && !s.Excluded.MatchesName(name)
}

// effectivePatterns returns the patterns that apply.
func (s NamespaceRule) effectivePatterns() Patterns {
	if _, plain := s.Served.PlainNames(); plain || !s.NamedOnly {
		return s.Served
	}
	return s.Served.exactPatterns()
}

// SplitByName splits the scope into lists for queries that can only compare names. The first list contains all names of
// the scope, unless it is empty. The second list contains excluded names. The rest has the patterns that need
// [NamespaceRule.MatchExpression]; hasRest is false if there are none.
func (s NamespaceRule) SplitByName() (in, notIn []string, rest NamespaceRule, hasRest bool) {
	served := s.effectivePatterns()
	if names, plain := served.PlainNames(); plain && len(names) > 0 {
		in = names
		// If only labels select namespaces, names do not restrict the scope.
	} else if !s.Served.selectByLabelsOnly() {
		rest.Served, rest.NamedOnly = s.Served, s.NamedOnly
	}
	for _, one := range s.Excluded {
		if names, plain := (Patterns{one}).PlainNames(); plain {
			notIn = append(notIn, names...)
		} else {
			rest.Excluded = append(rest.Excluded, one)
		}
	}
	slices.Sort(notIn)
	return in, slices.Compact(notIn), rest, len(rest.Served)+len(rest.Excluded) > 0
}

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
