package manifests

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterneeds"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
)

// Resolve returns the needs of an operator, and the resources by which they were resolved: those of the CRDs and of
// Kubernetes itself. It calls discover, for the resources of a cluster, only if these do not suffice. A kind that is
// not found is an error with its handlers.
func Resolve(
	o clusterneeds.PermissionInput, crds []CRD, discover func() ([]discovery.Resource, error),
) (needs []clusterneeds.Need, resources []discovery.Resource, err error) {
	for _, crd := range crds {
		resources = append(resources, crd.Resources...)
	}
	own := len(resources)
	resources = append(resources, clusterneeds.BuiltIn(clientgoscheme.Scheme)...)
	needs, unresolved := clusterneeds.Needs(o, resources)
	// Categories, groups and functions select everything that the cluster has.
	isOpen := func(one clusterneeds.HandlerNeeds) bool { return !one.Selector.IsSpecific() }
	if len(unresolved) == 0 && !slices.ContainsFunc(o.Handlers, isOpen) {
		return needs, resources, nil
	}
	served, err := discover()
	if err != nil {
		return nil, nil, errors.Join(unresolvedError(unresolved),
			fmt.Errorf("looking for the kinds in the cluster: %w", err))
	}
	// CRDs of files replace those of the cluster, which may be older.
	resources = resources[:own]
	for _, one := range served {
		isSame := func(r discovery.Resource) bool { return r.GroupResource() == one.GroupResource() }
		if !slices.ContainsFunc(resources[:own], isSame) {
			resources = append(resources, one)
		}
	}
	if needs, unresolved = clusterneeds.Needs(o, resources); len(unresolved) > 0 {
		return nil, nil, unresolvedError(unresolved)
	}
	return needs, resources, nil
}

// unresolvedError returns an error with all kinds that were not found, or nil.
func unresolvedError(all []clusterneeds.Unresolved) error {
	problems := make([]error, 0, len(all))
	for _, one := range all {
		var who []string // a handler can be registered for several reasons
		for _, h := range one.Handlers {
			who = appendMissing(who, []string{fmt.Sprintf("%q at %s", h.ID, h.Location)})
		}
		switch {
		case one.Rule != nil:
			problems = append(problems, fmt.Errorf("a rule of Needs: there is no resource %v in the groups %q",
				one.Rule.Resources, one.Rule.APIGroups))
		case len(one.Ambiguous) > 0:
			problems = append(problems, fmt.Errorf("the kind %q is ambiguous: %v: add the group; its handlers are %s",
				one.Selector, one.Ambiguous, strings.Join(who, ", ")))
		default:
			problems = append(problems, fmt.Errorf("there is no kind %q; its handlers are %s: give the folder with "+
				"its CRD by --crds, or a cluster that has it", one.Selector, strings.Join(who, ", ")))
		}
	}
	return errors.Join(problems...)
}
