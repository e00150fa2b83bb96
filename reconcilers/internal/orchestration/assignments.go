package orchestration

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// Assignment is a served resource with all of its handlers, in the order of registration.
type Assignment struct {
	Resource discovery.Resource
	Handlers []*adapters.HandlerChain
	// Parents are the kinds with handlers for the objects of the resource as children.
	Parents []schema.GroupKind
}

// resolveAssignments returns the resources to serve, each with the handlers of all selectors that match it. A resource
// that an ambiguous name could mean is left out.
func (o *Orchestrator) resolveAssignments() (all []Assignment) {
	// All handlers of a resource must share one controller, so they must agree on a version first.
	versions := o.chooseVersions()
	// Keep the order of registration, for resources and for handlers.
	at := map[schema.GroupVersionResource]int{}
	for _, registration := range o.registrations {
		for _, r := range o.selectedResources(registration.Selector, versions) {
			i, known := at[r.GroupVersionResource()]
			if !known {
				i = len(all)
				at[r.GroupVersionResource()] = i
				all = append(all, Assignment{Resource: r})
			}
			all[i].Handlers = append(all[i].Handlers, registration.Handler)
		}
	}
	for i := range all {
		all[i].Parents = parentsAmong(all, all[i])
	}
	return all
}

// parentsAmong returns the kinds with handlers for children of the assignment's kind.
func parentsAmong(all []Assignment, of Assignment) (parents []schema.GroupKind) {
	for _, watched := range of.Handlers {
		for _, a := range all {
			kind := a.Resource.GroupKind()
			if !slices.Contains(parents, kind) && slices.ContainsFunc(a.Handlers, func(h *adapters.HandlerChain) bool {
				// Each parent kind needs to see the children that its handlers are for.
				return h.Description.IsForChildren(watched.Description)
			}) {
				parents = append(parents, kind)
			}
		}
	}
	return parents
}

// chooseVersions chooses one version of every resource, because its objects are the same in all versions. Selectors
// with an explicit version take precedence over those without, and among these, selectors of one resource over those of
// many.
func (o *Orchestrator) chooseVersions() map[schema.GroupResource]discovery.Resource {
	chosen := map[schema.GroupResource]discovery.Resource{}
	for _, rank := range []func(discovery.Selector) bool{
		func(s discovery.Selector) bool { return s.Version.IsSet && s.IsSpecific() },
		func(s discovery.Selector) bool { return s.Version.IsSet },
		discovery.Selector.IsSpecific,
		func(discovery.Selector) bool { return true },
	} {
		for _, selector := range o.selectors {
			if !rank(selector) {
				continue
			}
			for _, r := range o.resolutions[selector].Served {
				if _, known := chosen[r.GroupResource()]; !known {
					chosen[r.GroupResource()] = r
				}
			}
		}
	}
	return chosen
}

// selectedResources returns the resources that a selector matches, each in the chosen version and only once.
func (o *Orchestrator) selectedResources(
	selector discovery.Selector, chosen map[schema.GroupResource]discovery.Resource,
) (all []discovery.Resource) {
	for _, r := range o.resolutions[selector].Served {
		best := chosen[r.GroupResource()]
		// A selector can match several versions of a resource, which all lead to the same chosen one.
		if !slices.ContainsFunc(all, best.IsInterchangeable) && !o.isAmbiguousResource(best) {
			all = append(all, best)
		}
	}
	return all
}

// isAmbiguousResource reports whether the name in some selector could mean this resource or another one.
func (o *Orchestrator) isAmbiguousResource(r discovery.Resource) bool {
	for _, resolution := range o.resolutions {
		for _, one := range resolution.Ambiguous {
			if one.GroupResource() == r.GroupResource() {
				return true
			}
		}
	}
	return false
}
