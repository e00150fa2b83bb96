package keys

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// prefixLength is the limit of Kubernetes for the prefix before the slash, in characters.
const prefixLength = 253

// reservedNames are the names that the framework uses under a prefix. The record of a handler with such an id would
// overwrite the framework's own data.
var reservedNames = append([]string{
	LastHandled, Handling, HandledUID, Touch, DeclaredIn, RetainedBy, ManagedMarker,
}, controlKeys...)

// ValidatePrefix returns an error unless the prefix is a DNS subdomain, such as "databases.example.org". It has
// lower-case letters, digits, dashes and dots, and up to 253 characters; each part between dots begins and ends with a
// letter or digit. An empty prefix is an error.
func ValidatePrefix(prefix string) error {
	if err := checkSubdomain(prefix); err != nil {
		return fmt.Errorf(
			"invalid annotation prefix %q: %w; use a domain name such as \"databases.example.org\"", prefix, err,
		)
	}
	return nil
}

// ValidateID returns an error if a handler id cannot be stored or served, with the reason and a remedy. The id cannot
// be stored if Kubernetes would refuse its annotation name in the form of [CurrentKey], or if the framework uses that
// name. It cannot be served if a part between slashes is empty, "." or "..", because such a part cannot be the segment
// of a URL path.
//
// Ids that Kopf generates are valid, such as "create_fn", "fn/spec.field", "outer.<locals>.fn", except for those of
// lambdas. The legacy form also depends on the prefix and is not checked here: use [ValidateKey] with each of
// [AnnotationKeys].
func ValidateID(id string) error {
	if err := checkID(id); err != nil {
		return fmt.Errorf("invalid handler id %q: %w", id, err)
	}
	return nil
}

// ValidateKey returns an error unless Kubernetes accepts the full annotation key, "<prefix>/<name>".
func ValidateKey(key string) error {
	prefix, name, ok := strings.Cut(key, "/")
	if !ok {
		return fmt.Errorf("invalid annotation key %q: it has no prefix; use \"<prefix>/<name>\"", key)
	}
	if err := errors.Join(checkSubdomain(prefix), checkName(name)); err != nil {
		return fmt.Errorf("invalid annotation key %q: %w", key, err)
	}
	return nil
}

// checkID returns the reason why an id is invalid.
func checkID(id string) error {
	switch {
	case id == "":
		return errors.New("it is empty; give the handler a name such as \"create\"")
	case !utf8.ValidString(id):
		return errors.New("it is not valid UTF-8; use letters and digits")
	case strings.ContainsFunc(id, unicode.IsControl):
		return errors.New("it has control characters; use letters and digits")
	}
	for segment := range strings.SplitSeq(id, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return fmt.Errorf(
				"its part %q cannot be a segment of a URL path; give every part between slashes a name", segment,
			)
		}
	}
	// The name of the annotation does not depend on the prefix.
	name := strings.TrimPrefix(CurrentKey("", id), "/")
	if IsReserved(name) {
		return fmt.Errorf("the annotation %q is the framework's own; choose another id", name)
	}
	if err := checkName(name); err != nil {
		return fmt.Errorf(
			"it cannot be an annotation: %w; choose an id of letters, digits, \"-\", \"_\", \".\", \"/\"", err,
		)
	}
	return nil
}

// checkName applies the rule of Kubernetes for the name after the slash.
func checkName(name string) error {
	if name == "" {
		return errors.New("the name is empty")
	}
	for offset, char := range name {
		if !isAlphanumeric(char) && !strings.ContainsRune("-_.", char) {
			return fmt.Errorf("the name %q has %q at position %d", name, char, offset)
		}
	}
	if len(name) > nameLength {
		return fmt.Errorf("the name %q has more than %d characters", name, nameLength)
	}
	if !isAlphanumeric(rune(name[0])) || !isAlphanumeric(rune(name[len(name)-1])) {
		return fmt.Errorf("the name %q begins or ends with neither a letter nor a digit", name)
	}
	return nil
}

// checkSubdomain applies the rule of Kubernetes for the prefix before the slash. Annotations may have upper-case
// letters, but finalizers use the same domain and may not.
func checkSubdomain(domain string) error {
	switch {
	case domain == "":
		return errors.New("the prefix is empty")
	case len(domain) > prefixLength:
		return fmt.Errorf("the prefix has more than %d characters", prefixLength)
	}
	for label := range strings.SplitSeq(domain, ".") {
		if label == "" || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return fmt.Errorf("the part %q of the prefix does not begin and end with a letter or a digit", label)
		}
		if bad := strings.IndexFunc(label, func(char rune) bool {
			return char != '-' && (!isAlphanumeric(char) || unicode.IsUpper(char))
		}); bad >= 0 {
			return fmt.Errorf(
				"the part %q of the prefix has other characters than lower-case letters, digits, dashes", label,
			)
		}
	}
	return nil
}

// isAlphanumeric reports whether a character is an ASCII letter or digit.
func isAlphanumeric(char rune) bool {
	return 'a' <= char && char <= 'z' || 'A' <= char && char <= 'Z' || '0' <= char && char <= '9'
}
