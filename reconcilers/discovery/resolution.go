package discovery

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Resolution is what a selector means at the moment.
type Resolution struct {
	// Served are the resources. A selector of more than one may have a resource in several versions, the best one
	// first.
	Served []Resource
	// Ambiguous are all those that one name could mean: nobody serves any of them.
	Ambiguous []Resource
	// Reason is why more of them could be expected to be served, and are not.
	Reason string
	// Incomplete is true if the server did not tell of all that might be meant.
	Incomplete bool
}

// Equivalent tells whether the same resources are served.
func (r Resolution) Equivalent(other Resolution) bool {
	return slices.EqualFunc(r.Served, other.Served, Resource.Interchangeable)
}

// unservedError is what the API server's list says by what is in it, and what is not.
type unservedError struct{ reason string }

// Error is the reason.
func (e *unservedError) Error() string { return e.reason }

// IsUnserved tells a kind that is not there from a server that did not answer.
func IsUnserved(err error) bool {
	var missing *unservedError
	return errors.As(err, &missing) || apierrors.IsNotFound(err)
}

// resolve finds the resource that a direct selector means among those of its group and version.
func resolve(s Selector, list []Resource, writes bool) (Resolution, error) {
	found := s.Select(list)
	switch {
	case len(found) == 0:
		return Resolution{}, &unservedError{fmt.Sprintf("%s has no resource named %q", s.groupVersion(), s.name())}
	case len(found) > 1:
		return Resolution{Ambiguous: found}, &unservedError{
			fmt.Sprintf("%s is ambiguous: it may be %q or %q", s, found[0].Plural, found[1].Plural),
		}
	}
	for _, verb := range needed(writes) {
		if !found[0].Can(verb) {
			return Resolution{}, &unservedError{fmt.Sprintf("%s cannot be handled: it does not support %q", s, verb)}
		}
	}
	return Resolution{Served: found}, nil
}

// needed are the verbs without which a resource cannot be handled.
func needed(writes bool) []string {
	verbs := []string{"list", "watch"}
	if writes {
		verbs = append(verbs, "patch")
	}
	return verbs
}

// resolutionOf is what a plan of one selector says. Preferred versions come first.
func resolutionOf(plan Plan) Resolution {
	served := slices.Clone(plan.Watched)
	slices.SortStableFunc(served, func(a, b Resource) int { return cmp.Compare(rank(a), rank(b)) })
	return Resolution{Served: served, Ambiguous: plan.Ambiguous, Reason: strings.Join(plan.Warnings, "; ")}
}

func rank(r Resource) int {
	if r.Preferred {
		return 0
	}
	return 1
}
