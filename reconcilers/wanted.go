package reconcilers

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// wants are the resources that are to be served, each with the handlers of all selectors that mean it, in the order of
// registration. What a name means that could mean others, too, is served by nobody.
func (s *serving) wants() (all []wanted) {
	versions := s.versions()
	at := map[Resource]int{}
	for _, registration := range s.registrations {
		for _, r := range s.meant(registration.Selector, versions) {
			i, known := at[r]
			if !known {
				i = len(all)
				at[r] = i
				all = append(all, wanted{Resource: r})
			}
			all[i].own = append(all[i].own, registration.Handler)
		}
	}
	return all
}

// versions choose one version of every resource: objects are the same in all of them. What names one resource goes before
// what means many.
func (s *serving) versions() map[schema.GroupResource]Resource {
	chosen := map[schema.GroupResource]Resource{}
	for _, wide := range []bool{false, true} {
		for _, selector := range selectorsOf(s.registrations) {
			if selector.wide() != wide {
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

// meant are the resources of one selector, each in one version: the chosen one if it will do.
func (s *serving) meant(selector Selector, chosen map[schema.GroupResource]Resource) (all []Resource) {
	served := s.meanings[selector].served
	done := map[schema.GroupResource]bool{}
	for _, r := range served {
		best := chosen[r.GroupResource()]
		anyVersion := selector.wide() && selector.Version == "" && selector.Func == nil
		switch {
		case done[r.GroupResource()] || s.ambiguous(r):
			continue
		case anyVersion || slices.Contains(served, best):
			r = best
		}
		done[r.GroupResource()] = true
		all = append(all, r)
	}
	return all
}

// ambiguous tells whether some selector's name means the resource, and others.
func (s *serving) ambiguous(r Resource) bool {
	for _, m := range s.meanings {
		if slices.Contains(m.ambiguous, r) {
			return true
		}
	}
	return false
}
