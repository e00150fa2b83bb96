package namespaces

import "slices"

// Scope says about which namespaces an operator is asked. The zero value is all of them.
type Scope struct {
	// Served are those that the operator is restricted to; none is the whole cluster.
	Served Patterns
	// NamedOnly serves of these only the ones that are named in full, as where namespaces are not listed.
	NamedOnly bool
	// Excluded are left out of those.
	Excluded Patterns
	// Live are those that are served at present, if that depends on their labels; nil, or not known yet, is those that
	// the patterns match.
	Live *Live
}

// Has reports whether the namespace is in the scope.
func (s Scope) Has(name string) bool {
	if s.Live != nil {
		if names, _ := s.Live.Current(); names != nil && !slices.Contains(names, name) {
			return false
		}
	}
	served := s.served()
	return (len(s.Served) == 0 || served.Matches(name)) && !s.Excluded.Matches(name)
}

// served are the patterns that count.
func (s Scope) served() Patterns {
	if _, plain := s.Served.Plain(); plain || !s.NamedOnly {
		return s.Served
	}
	return s.Served.named()
}

// In returns the names that the scope has at most, and NotIn those that it does not have, as far as they are names. The
// rest is what only [Scope.Expression] says of it; false means that there is none.
func (s Scope) In() (in, notIn []string, rest Scope, hasRest bool) {
	served := s.served()
	if names, plain := served.Plain(); plain && len(names) > 0 {
		in = names
	} else if !s.Served.takeAnyName() {
		rest.Served, rest.NamedOnly = s.Served, s.NamedOnly
	}
	for _, one := range s.Excluded {
		if names, plain := (Patterns{one}).Plain(); plain {
			notIn = append(notIn, names...)
		} else {
			rest.Excluded = append(rest.Excluded, one)
		}
	}
	slices.Sort(notIn)
	return in, slices.Compact(notIn), rest, len(rest.Served)+len(rest.Excluded) > 0
}
