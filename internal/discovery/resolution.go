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
		return Resolution{}, &unservedError{fmt.Sprintf("%s has no resource named %q", s.groupVersion(),
			s.singleName())}
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

// Use is how handlers use a resource.
type Use int

// The uses.
const (
	// Watching reads the objects: event handlers.
	Watching Use = iota
	// Patching reads and writes the objects: handlers of changes, daemons, timers.
	Patching
	// Indexing reads the objects for indices.
	Indexing
	// Reviewing does not need the objects: webhooks.
	Reviewing
)

// SelectorUse is a selector together with the use of its resources.
type SelectorUse struct {
	Selector Selector
	Use      Use
}

// Plan is the result of [PlanServed]: the resources by their use.
type Plan struct {
	// Watched are the resources to watch; Indexed those of indices, and Reviewed those of webhooks.
	Watched, Indexed, Reviewed []Resource
	// Ambiguous are resources that share a name which should mean only one; none of them is watched.
	Ambiguous []Resource
	// Warnings explain, one sentence for each selector or resource, why resources are not served.
	Warnings []string
}

// PlanServed decides which resources of the API server are handled. A name that several resources share is ambiguous,
// and none of them is handled then. The rules are Kopf's.
func PlanServed(wants []SelectorUse, all []Resource) Plan {
	var p Plan
	var patched []Resource
	for _, want := range wants {
		meant := want.Selector.SelectFrom(all)
		switch want.Use {
		case Reviewing:
			p.Reviewed = appendMissing(p.Reviewed, meant)
		case Indexing:
			p.Indexed = appendMissing(p.Indexed, meant)
			p.Watched = appendMissing(p.Watched, meant)
		case Patching:
			patched = appendMissing(patched, meant)
			p.Watched = appendMissing(p.Watched, meant)
		default:
			p.Watched = appendMissing(p.Watched, meant)
		}
		// The API server may serve the resource later, such as after an installation of its CRD.
		if len(meant) == 0 {
			p.addWarning(want.Selector, "there is no such resource")
		}
	}
	// Ambiguity removes the resources also from other selectors, so it comes after all of them.
	for _, want := range wants {
		meant := want.Selector.SelectFrom(all)
		// Webhooks can have ambiguous names: they do not watch objects.
		if want.Use != Reviewing && want.Selector.IsSpecific() && len(meant) > 1 {
			p.addWarning(
				want.Selector, fmt.Sprintf("it is ambiguous, so none of %v is handled: add the group", meant),
			)
			p.Ambiguous = appendMissing(p.Ambiguous, meant)
			p.Watched = dropResources(p.Watched, func(r Resource) bool { return containsResource(meant, r) })
		}
	}
	p.dropUnable(patched)
	return p
}

// dropUnable removes resources that cannot be watched. If handlers write to any watched resource that cannot be
// patched, it removes all resources that cannot be patched, as Kopf does.
func (p *Plan) dropUnable(patched []Resource) {
	// Without list and watch, an informer would fail for ever.
	p.Watched = dropResources(p.Watched, func(r Resource) bool {
		if r.HasVerbs("list", "watch") {
			return false
		}
		p.Warnings = append(p.Warnings,
			fmt.Sprintf("%s cannot be listed and watched: it has the verbs %v", r, r.Verbs))
		return true
	})
	// Progress cannot be stored on such objects.
	unpatchable := func(r Resource) bool { return !r.HasVerbs("patch") }
	if !slices.ContainsFunc(p.Watched, func(r Resource) bool {
		return unpatchable(r) &&
			containsResource(patched, r)
	}) {
		return
	}
	p.Watched = dropResources(p.Watched, func(r Resource) bool {
		if unpatchable(r) {
			p.Warnings = append(p.Warnings,
				fmt.Sprintf("%s cannot be patched, so nothing could be remembered of it", r))
		}
		return unpatchable(r)
	})
}

// addWarning adds a warning about a selector.
func (p *Plan) addWarning(s Selector, reason string) {
	p.Warnings = append(p.Warnings, s.String()+": "+reason)
}

// sameResource returns a predicate for the same resource, whatever its other properties are.
func sameResource(r Resource) func(Resource) bool {
	return func(other Resource) bool {
		return r.Group == other.Group && r.Version == other.Version && r.Plural == other.Plural
	}
}

// containsResource reports whether the list has the resource.
func containsResource(list []Resource, r Resource) bool {
	return slices.ContainsFunc(list, sameResource(r))
}

// appendMissing appends the resources that are not in the list yet.
func appendMissing(list, more []Resource) []Resource {
	for _, r := range more {
		if !containsResource(list, r) {
			list = append(list, r)
		}
	}
	return list
}

// dropResources returns a copy of the list without the resources for which drop is true.
func dropResources(list []Resource, drop func(Resource) bool) []Resource {
	return slices.DeleteFunc(slices.Clone(list), drop)
}
