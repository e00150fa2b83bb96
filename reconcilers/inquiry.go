package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/resources"
)

// Lister is the part of a discovery client that is needed.
type Lister interface {
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
}

// meaning is what a selector means at the moment.
type meaning struct {
	// served are the resources. A selector of more than one may have a resource in several versions, the best one first.
	served []Resource
	// ambiguous are all those that one name could mean: nobody serves any of them.
	ambiguous []Resource
	// unable is why more of them could be expected to be served, and are not.
	unable string
}

// inquiry is one round of questions: each document is asked for once, and what is heard holds for the round, so that two
// selectors of one kind are found together or not at all.
type inquiry struct {
	lister Lister
	server resources.Getter
	// writes tells the selectors whose handlers need to write to the objects.
	writes  map[Selector]bool
	answers map[schema.GroupVersion]answer
	scans   map[string]scan
}

type answer struct {
	list *metav1.APIResourceList
	err  error
}

type scan struct {
	found []resources.Resource
	err   error
}

// find tells what the selector means. What it meant before is still meant where the server does not answer.
func (i inquiry) find(ctx context.Context, s Selector, before []Resource) (meaning, error) {
	if s.searched() {
		return i.search(ctx, s, before)
	}
	heard, asked := i.answers[s.GroupVersion]
	if !asked {
		heard.list, heard.err = i.lister.ServerResourcesForGroupVersionWithContext(ctx, s.GroupVersion.String())
		i.answers[s.GroupVersion] = heard
	}
	if heard.err != nil {
		return meaning{}, fmt.Errorf("listing the resources of %s: %w", s.GroupVersion, heard.err)
	}
	return resolve(s, heard.list, i.writes[s])
}

// discovered is what there is in a group, or in all of them.
func (i inquiry) discovered(ctx context.Context, group *string) ([]resources.Resource, error) {
	key, groups := "*", []string(nil)
	if group != nil {
		key, groups = "group "+*group, []string{*group}
	}
	if heard, asked := i.scans[key]; asked {
		return heard.found, heard.err
	}
	heard := scan{err: errors.New("there is no API server to ask")}
	if i.server != nil {
		heard.found, heard.err = resources.Discover(ctx, i.server, groups...)
	}
	for at, r := range heard.found {
		if leaving(r.Verbs) {
			heard.found[at].Verbs = append(slices.Clone(r.Verbs), "patch")
		}
	}
	i.scans[key] = heard
	return heard.found, heard.err
}

// search finds what does not say of which group and version it is, or means more than one resource.
func (i inquiry) search(ctx context.Context, s Selector, before []Resource) (meaning, error) {
	wanted, err := s.parse()
	if err != nil {
		return meaning{}, err
	}
	all, err := i.discovered(ctx, wanted.Group)
	var silent *resources.SilentError
	if err != nil && !errors.As(err, &silent) {
		return meaning{}, fmt.Errorf("looking for %s: %w", s, err)
	}
	unknown := slices.DeleteFunc(slices.Clone(before), func(r Resource) bool { return silent == nil || !silent.About(r.GroupVersion()) })
	use := resources.Watching
	if i.writes[s] {
		use = resources.Patching
	}
	found := meaningOf(resources.Serve([]resources.Want{{Selector: wanted, Use: use}}, all))
	switch {
	case wanted.Specific() && len(unknown) > 0:
		return meaning{served: unknown}, nil
	case !wanted.Specific():
		found.served = append(found.served, unknown...)
	case len(found.ambiguous) == 0 && len(found.served) == 0 && silent != nil:
		return found, fmt.Errorf("looking for %s: %w", s, err)
	}
	if len(found.served) == 0 {
		return found, &unservedError{found.unable}
	}
	return found, nil
}

func meaningOf(plan resources.Plan) meaning {
	var m meaning
	var reasons []string
	for _, warning := range plan.Warnings {
		reasons = append(reasons, warning.Reason)
	}
	m.unable = strings.Join(reasons, "; ")
	m.ambiguous = servable(plan.Ambiguous)
	watched := slices.Clone(plan.Watched)
	slices.SortStableFunc(watched, func(a, b resources.Resource) int {
		switch {
		case a.Preferred == b.Preferred:
			return 0
		case a.Preferred:
			return -1
		default:
			return 1
		}
	})
	m.served = servable(watched)
	return m
}

func servable(list []resources.Resource) (all []Resource) {
	for _, r := range list {
		all = append(all, Resource{
			GroupVersionKind: r.GroupVersionKind, Plural: r.Plural, Namespaced: r.Namespaced,
			StatusSubresource: slices.Contains(r.Subresources, "status"),
		})
	}
	return all
}
