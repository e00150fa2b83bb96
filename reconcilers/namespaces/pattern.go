package namespaces

import (
	"regexp"
	"slices"
	"strings"
)

// Pattern tells for a namespace whether it is served. Kopf: NamespacePattern.
type Pattern struct {
	text       string
	globs      []glob
	expression *regexp.Regexp
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
		p.globs = append(p.globs, glob{pattern: []rune(pattern), negated: pattern != part})
	}
	if p.globs[0].negated {
		p.globs = slices.Insert(p.globs, 0, glob{pattern: []rune("*")})
	}
	return p
}

// Regexp is a pattern of the namespaces whose whole names match the expression.
func Regexp(expression *regexp.Regexp) Pattern {
	whole := regexp.MustCompile("^(?:" + expression.String() + ")$") // what compiles, does so in a group
	return Pattern{text: expression.String(), expression: whole}
}

// String is the text of the pattern.
func (p Pattern) String() string { return p.text }

// Matches tells whether the namespace of that name is served.
func (p Pattern) Matches(name string) bool {
	if p.expression != nil {
		return p.expression.MatchString(name)
	}
	var first, matched bool
	for i, g := range p.globs {
		switch hit := g.matches([]rune(name)); {
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

// Patterns serve what any of them does.
type Patterns []Pattern

// Matches tells whether any of the patterns matches.
func (p Patterns) Matches(name string) bool {
	return slices.ContainsFunc(p, func(one Pattern) bool { return one.Matches(name) })
}

// Specific are those of the patterns that can be nothing but the names of namespaces: all that can be served where
// namespaces may not be listed. Brackets are not looked at, as in Kopf.
func (p Patterns) Specific() (names []string) {
	for _, one := range p {
		if one.expression == nil && !strings.ContainsAny(one.text, "!*?,") {
			names = append(names, one.text)
		}
	}
	return names
}
