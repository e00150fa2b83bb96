package admission

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
)

// resources contains the resources of the handlers. Values are not changed after a scan, so they are shared without a
// lock.
type resources struct {
	reviewedResources []discovery.Resource
	// controllerResources contains, for each selector of sparing handlers, the resources that the controllers handle.
	controllerResources map[discovery.Selector][]discovery.Resource
}

// isReviewedBy reports whether a handler reviews a resource.
func (k resources) isReviewedBy(r RegisteredHandler, resource discovery.Resource) bool {
	// Sparing handlers only help the controllers, so resources without a controller do not need them.
	if !r.Handler.IsOptimization {
		return r.Selector.Matches(resource)
	}
	return slices.ContainsFunc(k.controllerResources[r.Selector],
		func(one discovery.Resource) bool { return sameResource(one, resource) })
}

// reviewedBy returns the resources of a handler.
func (k resources) reviewedBy(r RegisteredHandler) (all []discovery.Resource) {
	for _, resource := range k.reviewedResources {
		if k.isReviewedBy(r, resource) {
			all = append(all, resource)
		}
	}
	return all
}

// isEquivalent reports whether both contain the same resources, as far as that matters for reviews.
func (k resources) isEquivalent(other resources) bool {
	alike := func(a, b []discovery.Resource) bool { return slices.EqualFunc(a, b, sameResource) }
	return alike(k.reviewedResources, other.reviewedResources) &&
		maps.EqualFunc(k.controllerResources, other.controllerResources, alike)
}

// sameResource reports whether two resources are equal for reviews. Preferred matters to selectors without a version.
func sameResource(a, b discovery.Resource) bool {
	return a.IsInterchangeable(b) && a.Preferred == b.Preferred
}

// scanResources returns the current resources, or nil if nothing is known. For groups that the API server cannot list
// at present, it keeps the resources of the former scan. In this case, it also returns an error.
func (a *WebhookServer) scanResources(ctx context.Context, before *resources) (*resources, error) {
	if len(a.options.Registrations) == 0 {
		return &resources{}, nil // there is nothing to look for
	}
	all, err := discovery.ListResources(ctx, a.api, a.selectedGroups()...)
	var incomplete *discovery.IncompleteError
	// Groups of aggregated API servers can fail by themselves. The others are still valid.
	if err != nil && !errors.As(err, &incomplete) {
		return before, err
	}
	if before == nil {
		before = &resources{}
	}
	return a.options.selectResources(all, before, incomplete), err
}

// selectResources returns the resources of the handlers among all of the cluster. For groups that could not be listed,
// it keeps those of a former scan.
func (o Options) selectResources(
	all []discovery.Resource, before *resources, incomplete *discovery.IncompleteError,
) *resources {
	var wants []discovery.SelectorUse
	known := &resources{controllerResources: map[discovery.Selector][]discovery.Resource{}}
	for _, r := range o.Registrations {
		wants = append(wants, discovery.SelectorUse{Selector: r.Selector, Use: discovery.Reviewing})
		// Controllers can handle fewer resources than can be reviewed: they need to list, watch and patch.
		if r.Handler.IsOptimization {
			handled := discovery.PlanServed([]discovery.SelectorUse{{Selector: r.Selector, Use: discovery.Patching}},
				all).Watched
			known.controllerResources[r.Selector] = keepUnlistedResources(handled,
				before.controllerResources[r.Selector], incomplete)
		}
	}
	// Reviewed resources need neither list nor watch, so they can be subject to reviews only.
	known.reviewedResources = keepUnlistedResources(discovery.PlanServed(wants, all).Reviewed, before.reviewedResources,
		incomplete)
	return known
}

// keepUnlistedResources adds the former resources of groups that could not be listed.
func keepUnlistedResources(
	now, before []discovery.Resource, incomplete *discovery.IncompleteError,
) []discovery.Resource {
	for _, former := range before {
		unknown := incomplete != nil && incomplete.AffectsGroup(former.Group)
		if unknown && !slices.ContainsFunc(now, func(r discovery.Resource) bool { return sameResource(r, former) }) {
			now = append(now, former)
		}
	}
	return now
}

// selectedGroups returns the API groups of the resources, or nil for all. With explicit groups, a scan needs fewer
// requests.
func (a *WebhookServer) selectedGroups() (groups []string) {
	for _, r := range a.options.Registrations {
		if !r.Selector.Group.IsSet {
			return nil
		}
		groups = append(groups, r.Selector.Group.Text)
	}
	return groups
}
