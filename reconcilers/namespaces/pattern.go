package namespaces

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Pattern tells for a namespace whether it is served. Kopf: NamespacePattern.
type Pattern struct {
	text       string
	globs      []glob
	expression *regexp.Regexp
	labels     labels.Selector // that namespaces must match besides; nil is anything
}

// Parse reads a list of globs with commas between them, such as "myapp-*, !*-pr-*, *-pr-123": the first one selects,
// one with "!" takes away, and every other one gives back what was taken away of what the first one has selected. So
// "a,b" never matches b. If the first one takes away, it does so from all namespaces. Globs match whole names, with *,
// ?, [abc], [a-z] and [!abc].
func Parse(text string) Pattern {
	p := Pattern{text: text}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		pattern := strings.TrimLeft(part, "!")
		p.globs = append(p.globs, newGlob(pattern, pattern != part))
	}
	if p.globs[0].negated {
		p.globs = slices.Insert(p.globs, 0, newGlob("*", false))
	}
	return p
}

// Regexp is a pattern of the namespaces whose whole names match the expression, whatever it prefers to match.
func Regexp(expression *regexp.Regexp) Pattern {
	longest := *expression // the caller's is left as it is
	longest.Longest()
	return Pattern{text: expression.String(), expression: &longest}
}

// String is the text of the pattern.
func (p Pattern) String() string { return p.text }

// Equal tells whether the patterns have the same form and text.
func (p Pattern) Equal(other Pattern) bool {
	return p.text == other.text && (p.expression == nil) == (other.expression == nil) &&
		textOf(p.labels) == textOf(other.labels)
}

// Matches reports whether the namespace of that name is served, if it has the labels.
func (p Pattern) Matches(name string) bool {
	if p.expression != nil {
		at := p.expression.FindStringIndex(name)
		return at != nil && at[0] == 0 && at[1] == len(name)
	}
	var first, matched bool
	for i, g := range p.globs {
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

// Specific reports whether the pattern can only be the name of a namespace. It ignores brackets, as Kopf does.
func (p Pattern) Specific() bool {
	return p.expression == nil && p.labels == nil && !strings.ContainsAny(p.text, "!*?,")
}

// Patterns serve what any of them does.
type Patterns []Pattern

// Matches reports whether any of the patterns matches.
func (p Patterns) Matches(name string) bool {
	return slices.ContainsFunc(p, func(one Pattern) bool { return one.Matches(name) })
}

// Plain gives the names, sorted, if all of the patterns are plain names: then nobody has to look which namespaces there
// are.
func (p Patterns) Plain() (names []string, ok bool) {
	for _, one := range p {
		if one.expression != nil || one.labels != nil || strings.ContainsAny(one.text, "!*?,[") {
			return nil, false
		}
		names = append(names, one.text)
	}
	slices.Sort(names)
	return slices.Compact(names), true
}

// Named are the names that can be served without a request for namespaces, sorted: patterns that are no valid name are
// left out.
func (p Patterns) Named() (names []string) {
	names = p.named().Texts()
	slices.Sort(names)
	return slices.Compact(names)
}

func (p Patterns) named() Patterns {
	return slices.DeleteFunc(slices.Clone(p), func(one Pattern) bool {
		return !one.Specific() || len(validation.IsDNS1123Label(one.text)) > 0
	})
}

// Texts are those of the patterns.
func (p Patterns) Texts() (texts []string) {
	for _, one := range p {
		texts = append(texts, one.String())
	}
	return texts
}
