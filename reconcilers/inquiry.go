package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/resources"
)

// documentTimeout is for one document: one group that hangs must not hold up the others for long.
const documentTimeout = 10 * time.Second

// meaning is what a selector means at the moment.
type meaning struct {
	// served are the resources. A selector of more than one may have a resource in several versions, the best one
	// first.
	served []Resource
	// ambiguous are all those that one name could mean: nobody serves any of them.
	ambiguous []Resource
	// unable is why more of them could be expected to be served, and are not.
	unable string
	// silent is true if the server did not tell of all that might be meant.
	silent bool
}

// inquiry is one round of questions: each document is asked for once, and what is heard holds for the round, so that
// two selectors of one kind are found together or not at all.
type inquiry struct {
	server resources.Getter
	// writes tells the selectors whose handlers need to write to the objects.
	writes map[Selector]bool
	heard  map[string]answer
	scans  map[string]scan
}

type answer struct {
	data []byte
	err  error
}

type scan struct {
	found []resources.Resource
	err   error
}

func newInquiry(server resources.Getter, registrations []Registration) *inquiry {
	return &inquiry{
		server: server, writes: writersOf(registrations), heard: map[string]answer{}, scans: map[string]scan{},
	}
}

// Get asks for a document, once.
func (i *inquiry) Get(ctx context.Context, path string) ([]byte, error) {
	if known, asked := i.heard[path]; asked {
		return known.data, known.err
	}
	var is answer
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	is.data, is.err = i.server.Get(ctx, path)
	i.heard[path] = is
	return is.data, is.err
}

// find tells what the selector means. What it meant before is still meant where the server does not answer.
func (i *inquiry) find(ctx context.Context, s Selector, before []Resource) (meaning, error) {
	if s.searched() {
		return i.search(ctx, s, before)
	}
	list, err := i.list(ctx, s.GroupVersion)
	if err != nil {
		return meaning{}, fmt.Errorf("listing the resources of %s: %w", s.GroupVersion, err)
	}
	return resolve(s, list, i.writes[s])
}

// list is what there is in one version.
func (i *inquiry) list(ctx context.Context, gv schema.GroupVersion) (*metav1.APIResourceList, error) {
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	data, err := i.Get(ctx, path)
	switch {
	case err != nil:
		return nil, err
	case data == nil:
		return nil, &unservedError{"the API server has no such group and version"}
	}
	list := &metav1.APIResourceList{}
	if err := json.Unmarshal(data, list); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return list, nil
}

// discovered is what there is in a group, or in all of them.
func (i *inquiry) discovered(ctx context.Context, group *string) ([]resources.Resource, error) {
	key, groups := "*", []string(nil)
	if group != nil {
		key, groups = "group "+*group, []string{*group}
	}
	if heard, asked := i.scans[key]; asked {
		return heard.found, heard.err
	}
	var heard scan
	heard.found, heard.err = resources.Discover(ctx, i, groups...)
	for at, r := range heard.found {
		if leaving(r.Verbs) {
			heard.found[at].Verbs = append(slices.Clone(r.Verbs), "patch")
		}
	}
	i.scans[key] = heard
	return heard.found, heard.err
}

// search finds what does not say of which group and version it is, or means more than one resource.
func (i *inquiry) search(ctx context.Context, s Selector, before []Resource) (meaning, error) {
	wanted, err := s.parse()
	if err != nil {
		return meaning{}, err
	}
	all, err := i.discovered(ctx, wanted.Group)
	var silent *resources.SilentError
	if err != nil && !errors.As(err, &silent) {
		return meaning{}, fmt.Errorf("looking for %s: %w", s, err)
	}
	use := resources.Watching
	if i.writes[s] {
		use = resources.Patching
	}
	found := meaningOf(resources.Serve([]resources.Want{{Selector: wanted, Use: use}}, all))
	unknown := found.unknown(silent, before)
	if silent != nil {
		found.silent, found.unable = true, strings.TrimPrefix(found.unable+"; "+silent.Error(), "; ")
	}
	switch {
	case wanted.Specific() && len(unknown) > 0:
		return meaning{served: unknown, silent: true}, nil
	case !wanted.Specific():
		found.served = append(found.served, unknown...)
	case len(found.ambiguous) == 0 && len(found.served) == 0 && silent != nil && len(before) == 0:
		return found, fmt.Errorf("looking for %s: %w", s, err)
	}
	if len(found.served) == 0 {
		return found, &unservedError{found.unable}
	}
	return found, nil
}

// unknown are the resources of before of whose group the server did not tell all, unless it told of them.
func (m meaning) unknown(silent *resources.SilentError, before []Resource) (all []Resource) {
	for _, r := range before {
		told := slices.ContainsFunc(
			m.served, func(other Resource) bool { return other.GroupResource() == r.GroupResource() },
		)
		if silent != nil && silent.AboutGroup(r.Group) && !told {
			all = append(all, r)
		}
	}
	return all
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
