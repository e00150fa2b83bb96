package namespaces

import "slices"

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
