package keys

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
)

// reservedNames are the names that the framework uses under a prefix. The record of a handler with such an id would
// overwrite the framework's own data.
var reservedNames = append([]string{
	LastHandled, Handling, HandledUID, Touch, DeclaredIn, RetainedBy, ManagedMarker,
}, controlKeys...)

// ValidatePrefix returns an error unless the prefix is a DNS subdomain, such as "databases.example.org". It has
// lower-case letters, digits, dashes and dots, and up to 253 characters; each part between dots begins and ends with a
// letter or digit. Annotations may have upper-case letters, but finalizers use the same domain and may not.
func ValidatePrefix(prefix string) error {
	if len(validation.IsDNS1123Subdomain(prefix)) > 0 {
		return fmt.Errorf("invalid annotation prefix %q: use a domain name in lower case, such as "+
			`"databases.example.org", of at most 253 characters`, prefix)
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
	if !strings.Contains(key, "/") {
		return fmt.Errorf("invalid annotation key %q: it has no prefix; use \"<prefix>/<name>\"", key)
	}
	if len(validation.IsQualifiedName(key)) > 0 {
		return fmt.Errorf("invalid annotation key %q: use a domain name in lower case, a slash, and a name of at most "+
			`63 letters, digits, "-", "_", "." that begins and ends with a letter or digit`, key)
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
	if len(validation.IsQualifiedName(name)) > 0 {
		return errors.New(`it cannot be an annotation: choose an id of letters, digits, "-", "_", ".", "/" ` +
			"that begins and ends with a letter or digit")
	}
	return nil
}

// IsReserved reports whether the framework itself uses the name after the prefix, on some object: a reserved name with
// or without a kind at its end, or the name of a record of children. The name of a handler's record is not reserved.
func IsReserved(name string) bool {
	return strings.HasPrefix(name, ChildrenOf) || strings.HasPrefix(name, ChildrenOfRun) ||
		slices.ContainsFunc(reservedNames, func(own string) bool { return isReserved(name, own) })
}
