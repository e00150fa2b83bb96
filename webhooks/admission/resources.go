package admission

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
)

// resources are what the handlers are for.
type resources struct {
	reviewed []discovery.Resource
	// spared are those of each selector that controllers can handle, for sparing handlers.
	spared map[discovery.Selector][]discovery.Resource
}

// has tells whether a handler is for a resource.
func (k resources) has(r Registration, resource discovery.Resource) bool {
	if !r.Handler.Sparing {
		return r.Selector.Matches(resource)
	}
	return slices.ContainsFunc(k.spared[r.Selector], func(one discovery.Resource) bool { return same(one, resource) })
}

// of are those that a handler is for.
func (k resources) of(r Registration) (all []discovery.Resource) {
	for _, resource := range k.reviewed {
		if k.has(r, resource) {
			all = append(all, resource)
		}
	}
	return all
}

// same tells whether nothing differs that matters for reviews.
func (k resources) same(other resources) bool {
	alike := func(a, b []discovery.Resource) bool { return slices.EqualFunc(a, b, same) }
	return alike(k.reviewed, other.reviewed) && maps.EqualFunc(k.spared, other.spared, alike)
}

func same(a, b discovery.Resource) bool { return a.Interchangeable(b) && a.Preferred == b.Preferred }

// scan gives the resources that there are; not nil, unless nothing is known. Those that the API server cannot tell of
// now are as before.
func (a *Admission) scan(ctx context.Context, before *resources) (*resources, error) {
	if len(a.options.Registrations) == 0 {
		return &resources{}, nil // there is nothing to look for
	}
	all, err := discovery.Discover(ctx, a.api, a.groups()...)
	var incomplete *discovery.IncompleteError
	if err != nil && !errors.As(err, &incomplete) {
		return before, err
	}
	if before == nil {
		before = &resources{}
	}
	var wants []discovery.Want
	known := &resources{spared: map[discovery.Selector][]discovery.Resource{}}
	for _, r := range a.options.Registrations {
		wants = append(wants, discovery.Want{Selector: r.Selector, Use: discovery.Reviewing})
		if r.Handler.Sparing {
			handled := discovery.Serve([]discovery.Want{{Selector: r.Selector, Use: discovery.Patching}}, all).Watched
			known.spared[r.Selector] = withUnknown(handled, before.spared[r.Selector], incomplete)
		}
	}
	known.reviewed = withUnknown(discovery.Serve(wants, all).Reviewed, before.reviewed, incomplete)
	return known, err
}

// withUnknown adds those of before that nothing is known of now.
func withUnknown(now, before []discovery.Resource, incomplete *discovery.IncompleteError) []discovery.Resource {
	for _, former := range before {
		unknown := incomplete != nil && incomplete.AboutGroup(former.Group)
		if unknown && !slices.ContainsFunc(now, func(r discovery.Resource) bool { return same(r, former) }) {
			now = append(now, former)
		}
	}
	return now
}

// groups are those in which the resources are; nil is all.
func (a *Admission) groups() (groups []string) {
	for _, r := range a.options.Registrations {
		if !r.Selector.Group.Given {
			return nil
		}
		groups = append(groups, r.Selector.Group.Text)
	}
	return groups
}
