package namespaces

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// NamespacePattern matches the namespaces that are served, by name and labels. It has either globs or an expression.
// Kopf: NamespacePattern.
type NamespacePattern struct {
	text       string
	globs      []glob
	expression *regexp.Regexp
	labels     labels.Selector // that namespaces must match in addition; nil matches all
}

// ParsePattern reads a comma-separated list of globs, such as "myapp-*, !*-pr-*, *-pr-123". The first glob selects
// names. A glob with "!" removes names. Any other glob restores removed names that the first glob selects. Thus "a,b"
// never matches b, as in Kopf. If the first glob has a "!", it removes names from all namespaces. Globs match whole
// names; the syntax is *, ?, [abc], [a-z] and [!abc].
func ParsePattern(text string) NamespacePattern {
	p := NamespacePattern{text: text}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		// Kopf strips all leading exclamation marks, so "!!a" is negated, too.
		pattern := strings.TrimLeft(part, "!")
		p.globs = append(p.globs, newGlob(pattern, pattern != part))
	}
	if p.globs[0].negated {
		p.globs = slices.Insert(p.globs, 0, newGlob("*", false))
	}
	return p
}

// PatternFromRegexp returns a pattern for the namespaces whose whole names match the expression.
func PatternFromRegexp(expression *regexp.Regexp) NamespacePattern {
	// Leftmost-first matching could prefer a shorter alternative, and the whole name would not match. The copy leaves
	// the caller's expression unchanged.
	longest := *expression
	longest.Longest()
	return NamespacePattern{text: expression.String(), expression: &longest}
}

// String returns the text of the pattern.
func (p NamespacePattern) String() string { return p.text }

// Equal reports whether both patterns have the same form, text and labels.
func (p NamespacePattern) Equal(other NamespacePattern) bool {
	return p.text == other.text && (p.expression == nil) == (other.expression == nil) &&
		selectorText(p.labels) == selectorText(other.labels)
}

// MatchesName reports whether the name matches. The namespace is served if it also has the labels, which this does not
// check.
func (p NamespacePattern) MatchesName(name string) bool {
	if p.expression != nil {
		at := p.expression.FindStringIndex(name)
		return at != nil && at[0] == 0 && at[1] == len(name)
	}
	var first, matched bool
	for i, g := range p.globs {
		// The algorithm and its precedence are those of Kopf.
		switch hit := g.expression.MatchString(name); {
		case i == 0:
			first, matched = hit, hit
		case g.negated:
			matched = matched && !hit
		default:
			matched = matched || first && hit
		}
	}
	return matched
}

// IsExactName reports whether the pattern can only be the name of one namespace. It does not consider brackets, as in
// Kopf.
func (p NamespacePattern) IsExactName() bool {
	return p.expression == nil && p.labels == nil && !strings.ContainsAny(p.text, "!*?,")
}

// Patterns match a namespace if any of them does.
type Patterns []NamespacePattern

// MatchesName reports whether any of the patterns matches.
func (p Patterns) MatchesName(name string) bool {
	return slices.ContainsFunc(p, func(one NamespacePattern) bool { return one.MatchesName(name) })
}

// PlainNames returns the names, sorted, if all patterns are plain names. The operator then does not need to list
// namespaces. Unlike [NamespacePattern.IsExactName], it treats brackets as syntax.
func (p Patterns) PlainNames() (names []string, ok bool) {
	for _, one := range p {
		if one.expression != nil || one.labels != nil || strings.ContainsAny(one.text, "!*?,[") {
			return nil, false
		}
		names = append(names, one.text)
	}
	slices.Sort(names)
	return slices.Compact(names), true
}

// ExactNames returns the names that can be served without listing namespaces, sorted. It leaves out patterns that are
// not valid names.
func (p Patterns) ExactNames() (names []string) {
	names = p.exactPatterns().Texts()
	slices.Sort(names)
	return slices.Compact(names)
}

// exactPatterns returns the patterns that are valid names.
func (p Patterns) exactPatterns() Patterns {
	return slices.DeleteFunc(slices.Clone(p), func(one NamespacePattern) bool {
		return !one.IsExactName() || len(validation.IsDNS1123Label(one.text)) > 0
	})
}

// Texts returns the texts of the patterns, in their order.
func (p Patterns) Texts() (texts []string) {
	for _, one := range p {
		texts = append(texts, one.String())
	}
	return texts
}

// WithLabels returns patterns that also require these labels of a namespace. Labels are known only from the cluster, so
// the returned patterns are never [Patterns.PlainNames].
func (p Patterns) WithLabels(by labels.Selector) Patterns {
	all := slices.Clone(p)
	for i := range all {
		all[i].labels = by
	}
	return all
}

// LabelSelector returns the selector for the labels of namespaces; nil selects all. All patterns share one selector.
func (p Patterns) LabelSelector() labels.Selector {
	if len(p) == 0 {
		return nil
	}
	return p[0].labels
}

// selectByLabelsOnly reports whether only labels select the namespaces.
func (p Patterns) selectByLabelsOnly() bool {
	return len(p) == 1 && p[0].text == "*" && p[0].labels != nil
}

// selectorText returns the text of a selector, and an empty text for nil.
func selectorText(by labels.Selector) string {
	if by == nil {
		return ""
	}
	return by.String()
}
