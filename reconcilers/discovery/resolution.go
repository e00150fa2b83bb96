package discovery

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Resolution is the set of resources that a selector matches at present.
type Resolution struct {
	// Served are the resources to be handled. If a selector of many resources matches several versions of one, the
	// preferred version comes first.
	Served []Resource
	// Ambiguous are the resources that share a name which should mean only one. None of them is handled.
	Ambiguous []Resource
	// Reason explains why matching resources are not handled; empty if all are.
	Reason string
	// Incomplete is true if the API server could not list all resources that the selector may match.
	Incomplete bool
}

// IsEquivalent reports whether both serve the same resources, so that controllers need no restart.
func (r Resolution) IsEquivalent(other Resolution) bool {
	return slices.EqualFunc(r.Served, other.Served, Resource.IsInterchangeable)
}

// unservedError reports that the API server does not serve a resource, or not with the required verbs.
type unservedError struct{ reason string }

// Error returns the reason.
func (e *unservedError) Error() string { return e.reason }

// IsUnserved reports whether the resource is not served. It is false if the server did not answer.
func IsUnserved(err error) bool {
	var missing *unservedError
	return errors.As(err, &missing) || apierrors.IsNotFound(err)
}

// resolveDirect finds the resource of a direct selector among those of its group and version.
func resolveDirect(s Selector, list []Resource, writes bool) (Resolution, error) {
	found := s.SelectFrom(list)
	switch {
	case len(found) == 0:
		return Resolution{}, &unservedError{fmt.Sprintf("%s has no resource named %q", s.groupVersion(), s.singleName())}
	case len(found) > 1:
		return Resolution{Ambiguous: found}, &unservedError{
			fmt.Sprintf("%s is ambiguous: it may be %q or %q", s, found[0].Plural, found[1].Plural),
		}
	}
	// A resource without a verb, such as patch, would fail at each pass. Refuse it as a whole.
	for _, verb := range requiredVerbs(writes) {
		if !found[0].HasVerbs(verb) {
			return Resolution{}, &unservedError{fmt.Sprintf("%s cannot be handled: it does not support %q", s, verb)}
		}
	}
	return Resolution{Served: found}, nil
}

// requiredVerbs returns the verbs without which a resource cannot be handled.
func requiredVerbs(writes bool) []string {
	verbs := []string{"list", "watch"}
	if writes {
		verbs = append(verbs, "patch")
	}
	return verbs
}

// resolutionOf converts the plan of one selector. Preferred versions come first.
func resolutionOf(plan Plan) Resolution {
	served := slices.Clone(plan.Watched)
	slices.SortStableFunc(served, func(a, b Resource) int { return cmp.Compare(versionRank(a), versionRank(b)) })
	return Resolution{Served: served, Ambiguous: plan.Ambiguous, Reason: strings.Join(plan.Warnings, "; ")}
}

// versionRank sorts preferred versions before others.
func versionRank(r Resource) int {
	if r.Preferred {
		return 0
	}
	return 1
}
