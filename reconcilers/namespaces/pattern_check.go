package namespaces

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

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
