package discovery

import (
	"fmt"
	"slices"
)

// Use says what handlers need of a resource.
type Use int

// The uses.
const (
	// Watching needs the objects, and never writes to them: event handlers.
	Watching Use = iota
	// Patching needs the objects, and writes to them: handlers of changes, daemons, timers.
	Patching
	// Indexing needs the objects, for indices.
	Indexing
	// Reviewing needs no objects: webhooks.
	Reviewing
)

// Want is a selector, and what its handlers need of the resources.
type Want struct {
	Selector Selector
	Use      Use
}

// Plan is which resources are served.
type Plan struct {
	// Watched are those whose objects are watched; Indexed those of indices, and Reviewed those of webhooks.
	Watched, Indexed, Reviewed []Resource
	// Ambiguous are those that share a name by which one was meant; none of them is watched.
	Ambiguous []Resource
	// Warnings are what users expect and do not get, one sentence with the names for each selector or resource.
	Warnings []string
}

// Serve decides which resources of the API server are handled. A name that several resources share selects none of
// them, as it is ambiguous.
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
		if len(meant) == 0 {
			p.warn(want.Selector, "there is no such resource")
		}
	}
	for _, want := range wants {
		meant := want.Selector.Select(all)
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

// dropUnable removes resources that cannot be watched; and, if handlers write to any resource that cannot be patched,
// all resources that cannot be patched.
func (p *Plan) dropUnable(patched []Resource) {
	p.Watched = without(p.Watched, func(r Resource) bool {
		if r.Can("list", "watch") {
			return false
		}
		p.Warnings = append(p.Warnings,
			fmt.Sprintf("%s cannot be listed and watched: it has the verbs %v", r, r.Verbs))
		return true
	})
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

func (p *Plan) warn(s Selector, reason string) {
	p.Warnings = append(p.Warnings, s.String()+": "+reason)
}

func same(r Resource) func(Resource) bool {
	return func(other Resource) bool {
		return r.Group == other.Group && r.Version == other.Version && r.Plural == other.Plural
	}
}

func contains(list []Resource, r Resource) bool { return slices.ContainsFunc(list, same(r)) }

func add(list, more []Resource) []Resource {
	for _, r := range more {
		if !contains(list, r) {
			list = append(list, r)
		}
	}
	return list
}

func without(list []Resource, drop func(Resource) bool) []Resource {
	return slices.DeleteFunc(slices.Clone(list), drop)
}
