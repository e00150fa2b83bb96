package discovery

import (
	"fmt"
	"slices"
)

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

// Want is a selector together with the use of its resources.
type Want struct {
	Selector Selector
	Use      Use
}

// Plan is the result of [Serve]: the resources by their use.
type Plan struct {
	// Watched are the resources to watch; Indexed those of indices, and Reviewed those of webhooks.
	Watched, Indexed, Reviewed []Resource
	// Ambiguous are resources that share a name which should mean only one; none of them is watched.
	Ambiguous []Resource
	// Warnings explain, one sentence for each selector or resource, why resources are not served.
	Warnings []string
}

// Serve decides which resources of the API server are handled. A name that several resources share is ambiguous,
// and none of them is handled then. The rules are Kopf's.
func Serve(wants []Want, all []Resource) Plan {
	var p Plan
	var patched []Resource
	for _, want := range wants {
		meant := want.Selector.Select(all)
		switch want.Use {
		case Reviewing:
			p.Reviewed = add(p.Reviewed, meant)
		case Indexing:
			p.Indexed = add(p.Indexed, meant)
			p.Watched = add(p.Watched, meant)
		case Patching:
			patched = add(patched, meant)
			p.Watched = add(p.Watched, meant)
		default:
			p.Watched = add(p.Watched, meant)
		}
		// The API server may serve the resource later, such as after an installation of its CRD.
		if len(meant) == 0 {
			p.warn(want.Selector, "there is no such resource")
		}
	}
	// Ambiguity removes the resources also from other selectors, so it comes after all of them.
	for _, want := range wants {
		meant := want.Selector.Select(all)
		// Webhooks can have ambiguous names: they do not watch objects.
		if want.Use != Reviewing && want.Selector.Specific() && len(meant) > 1 {
			p.warn(
				want.Selector, fmt.Sprintf("it is ambiguous, so none of %v is handled: add the group", meant),
			)
			p.Ambiguous = add(p.Ambiguous, meant)
			p.Watched = without(p.Watched, func(r Resource) bool { return contains(meant, r) })
		}
	}
	p.dropUnable(patched)
	return p
}

// dropUnable removes resources that cannot be watched. If handlers write to any watched resource that cannot be
// patched, it removes all resources that cannot be patched, as Kopf does.
func (p *Plan) dropUnable(patched []Resource) {
	// Without list and watch, an informer would fail for ever.
	p.Watched = without(p.Watched, func(r Resource) bool {
		if r.Can("list", "watch") {
			return false
		}
		p.Warnings = append(p.Warnings,
			fmt.Sprintf("%s cannot be listed and watched: it has the verbs %v", r, r.Verbs))
		return true
	})
	// Progress cannot be stored on such objects.
	unpatchable := func(r Resource) bool { return !r.Can("patch") }
	if !slices.ContainsFunc(p.Watched, func(r Resource) bool { return unpatchable(r) && contains(patched, r) }) {
		return
	}
	p.Watched = without(p.Watched, func(r Resource) bool {
		if unpatchable(r) {
			p.Warnings = append(p.Warnings,
				fmt.Sprintf("%s cannot be patched, so nothing could be remembered of it", r))
		}
		return unpatchable(r)
	})
}

// warn adds a warning about a selector.
func (p *Plan) warn(s Selector, reason string) {
	p.Warnings = append(p.Warnings, s.String()+": "+reason)
}

// same returns a predicate for the same resource, whatever its other properties are.
func same(r Resource) func(Resource) bool {
	return func(other Resource) bool {
		return r.Group == other.Group && r.Version == other.Version && r.Plural == other.Plural
	}
}

// contains reports whether the list has the resource.
func contains(list []Resource, r Resource) bool { return slices.ContainsFunc(list, same(r)) }

// add appends the resources that are not in the list yet.
func add(list, more []Resource) []Resource {
	for _, r := range more {
		if !contains(list, r) {
			list = append(list, r)
		}
	}
	return list
}

// without returns a copy of the list without the resources for which drop is true.
func without(list []Resource, drop func(Resource) bool) []Resource {
	return slices.DeleteFunc(slices.Clone(list), drop)
}
