package reconcilers

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// wants are the resources that are to be served, each with the handlers of all selectors that mean it, in the order of
// registration. What a name means that could mean others, too, is served by nobody.
func (s *serving) wants() (all []wanted) {
	versions := s.versions()
	at := map[schema.GroupVersionResource]int{}
	for _, registration := range s.registrations {
		for _, r := range s.meant(registration.Selector, versions) {
			i, known := at[r.GroupVersionResource()]
			if !known {
				i = len(all)
				at[r.GroupVersionResource()] = i
				all = append(all, wanted{Resource: r})
			}
			all[i].own = append(all[i].own, registration.Handler)
		}
	}
	return all
}

// versions choose one version of every resource: objects are the same in all of them. What says a version goes before
// what does not, and what names one resource before what means many.
func (s *serving) versions() map[schema.GroupResource]Resource {
	chosen := map[schema.GroupResource]Resource{}
	for _, rank := range []func(Selector) bool{
		func(s Selector) bool { return s.Version != "" && !s.wide() }, func(s Selector) bool { return s.Version != "" },
		func(s Selector) bool { return !s.wide() }, func(Selector) bool { return true },
	} {
		for _, selector := range selectorsOf(s.registrations) {
			if !rank(selector) {
				continue
			}
			for _, r := range s.meanings[selector].served {
				if _, known := chosen[r.GroupResource()]; !known {
					chosen[r.GroupResource()] = r
				}
			}
		}
	}
	return chosen
}

// meant are the resources of one selector, each in the chosen version.
func (s *serving) meant(selector Selector, chosen map[schema.GroupResource]Resource) (all []Resource) {
	for _, r := range s.meanings[selector].served {
		best := chosen[r.GroupResource()]
		if !slices.Contains(all, best) && !s.ambiguous(best) {
			all = append(all, best)
		}
	}
	return all
}

// ambiguous tells whether some selector's name means the resource, and others.
func (s *serving) ambiguous(r Resource) bool {
	for _, m := range s.meanings {
		for _, one := range m.ambiguous {
			if one.GroupResource() == r.GroupResource() {
				return true
			}
		}
	}
	return false
}
