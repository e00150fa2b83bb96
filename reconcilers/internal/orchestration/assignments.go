package orchestration

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
)

// Assignment is a resource with all its handlers, in the order of registration.
type Assignment struct {
	Resource discovery.Resource
	Handlers []*adapters.Handler
	// Parents are the kinds with handlers that have the objects of the resource watched, as their children.
	Parents []schema.GroupKind
}

// assignments are the resources that are to be served, each with the handlers of all selectors that mean it. An
// ambiguous name assigns none of the resources that it could mean.
func (o *Orchestrator) assignments() (all []Assignment) {
	versions := o.versions()
	at := map[schema.GroupVersionResource]int{}
	for _, registration := range o.registrations {
		for _, r := range o.meant(registration.Selector, versions) {
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

// parentsAmong returns the kinds with handlers for the children that the assignment has watched.
func parentsAmong(all []Assignment, of Assignment) (parents []schema.GroupKind) {
	for _, watched := range of.Handlers {
		for _, a := range all {
			kind := a.Resource.GroupKind()
			if !slices.Contains(parents, kind) && slices.ContainsFunc(a.Handlers, func(h *adapters.Handler) bool {
				return h.Description.IsForChildren(watched.Description)
			}) {
				parents = append(parents, kind)
			}
		}
	}
	return parents
}

// versions choose one version of every resource: objects are the same in all of them. What says a version goes before
// what does not, and what names one resource before what means many.
func (o *Orchestrator) versions() map[schema.GroupResource]discovery.Resource {
	chosen := map[schema.GroupResource]discovery.Resource{}
	for _, rank := range []func(discovery.Selector) bool{
		func(s discovery.Selector) bool { return s.Version.Given && s.Specific() },
		func(s discovery.Selector) bool { return s.Version.Given },
		discovery.Selector.Specific,
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

// meant are the resources of one selector, each in the chosen version.
func (o *Orchestrator) meant(
	selector discovery.Selector, chosen map[schema.GroupResource]discovery.Resource,
) (all []discovery.Resource) {
	for _, r := range o.resolutions[selector].Served {
		best := chosen[r.GroupResource()]
		if !slices.ContainsFunc(all, best.Interchangeable) && !o.ambiguous(best) {
			all = append(all, best)
		}
	}
	return all
}

// ambiguous tells whether some selector's name means the resource, and others.
func (o *Orchestrator) ambiguous(r discovery.Resource) bool {
	for _, resolution := range o.resolutions {
		for _, one := range resolution.Ambiguous {
			if one.GroupResource() == r.GroupResource() {
				return true
			}
		}
	}
	return false
}
