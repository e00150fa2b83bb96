package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/transport"
)

// Inquiry is one round of discovery. It requests each document once and uses the answer for the whole round, so that
// two selectors of one resource both find it or both do not.
type Inquiry struct {
	server           Getter
	writingSelectors map[Selector]bool       // selectors whose handlers write
	answers          map[string]cachedAnswer // answers by path
	listings         map[string]groupListing // results of [ListResources], by group; "*" is all groups
	retryAfter       time.Duration           // the longest Retry-After of the answers
}

// cachedAnswer is the answer of the API server for one path.
type cachedAnswer struct {
	data []byte
	err  error
}

// groupListing is the result of [ListResources] for one group, or for all.
type groupListing struct {
	resources []Resource
	err       error
}

// NewInquiry begins a round. The map writes marks the selectors whose handlers write to the objects, if only their
// progress.
func NewInquiry(server Getter, writes map[Selector]bool) *Inquiry {
	return &Inquiry{server: server, writingSelectors: writes, answers: map[string]cachedAnswer{},
		listings: map[string]groupListing{}}
}

// Get returns a document. Only the first call for a path sends a request; errors are kept as well.
func (i *Inquiry) Get(ctx context.Context, path string) ([]byte, error) {
	if known, asked := i.answers[path]; asked {
		return known.data, known.err
	}
	// Failures are remembered, too: a document is not requested again in the same round.
	var is cachedAnswer
	is.data, is.err = i.server.Get(ctx, path)
	i.retryAfter = max(i.retryAfter, transport.RetryAfter(is.err))
	i.answers[path] = is
	return is.data, is.err
}

// RetryAfter returns the longest delay that the API server has requested in this round; zero without one.
func (i *Inquiry) RetryAfter() time.Duration { return i.retryAfter }

// Resolve returns the resources that the selector matches. For groups without an answer, it keeps the resources in
// before. If IsUnserved is true for the error, the server does not serve the resource; after any other error, that is
// unknown.
func (i *Inquiry) Resolve(ctx context.Context, s Selector, before []Resource) (Resolution, error) {
	// One document is enough for a direct selector. An unrelated group that fails does not affect it.
	if !s.isDirect() {
		return i.searchResources(ctx, s, before)
	}
	list, err := i.listGroupVersion(ctx, s.groupVersion())
	if err != nil {
		return Resolution{}, fmt.Errorf("listing the resources of %s: %w", s.groupVersion(), err)
	}
	// The use decides which verbs are required.
	return resolveDirect(s, list, i.writingSelectors[s])
}

// listGroupVersion returns the resources of one version.
func (i *Inquiry) listGroupVersion(ctx context.Context, gv schema.GroupVersion) ([]Resource, error) {
	v := groupVersion{GroupVersion: gv, path: "/apis/" + gv.String()}
	if gv.Group == "" {
		v.path = "/api/" + gv.Version
	}
	data, err := i.Get(ctx, v.path)
	switch {
	case err != nil:
		return nil, err
	// This is a definite answer, unlike a failed request.
	case data == nil:
		return nil, &unservedError{"the API server has no such group and version"}
	}
	var list metav1.APIResourceList
	if err := decodeDocument(data, nil, v.path, &list); err != nil {
		return nil, err
	}
	return addPatchVerb(v.resourcesOf(list)), nil
}

// discoverGroup returns the resources of a group, or of all groups, and keeps the result for the round.
func (i *Inquiry) discoverGroup(ctx context.Context, group SelectorPart) ([]Resource, error) {
	// The key "*" cannot be confused with a group, whose keys have a prefix.
	key, groups := "*", []string(nil)
	if group.IsSet {
		key, groups = "group "+group.Text, []string{group.Text}
	}
	if heard, asked := i.listings[key]; asked {
		return heard.resources, heard.err
	}
	var heard groupListing
	heard.resources, heard.err = ListResources(ctx, i, groups...)
	heard.resources = addPatchVerb(heard.resources)
	i.listings[key] = heard
	return heard.resources, heard.err
}

// searchResources resolves a selector that leaves the group or the version open, or matches several resources.
func (i *Inquiry) searchResources(ctx context.Context, s Selector, before []Resource) (Resolution, error) {
	all, err := i.discoverGroup(ctx, s.Group)
	var incomplete *IncompleteError
	// An incomplete list may still be enough. Without any list, nothing is known.
	if err != nil && !errors.As(err, &incomplete) {
		return Resolution{}, fmt.Errorf("looking for %s: %w", s, err)
	}
	use := Watching
	if i.writingSelectors[s] {
		use = Patching
	}
	// Resolve the selector alone, so that the warnings are about this selector.
	found := resolutionOf(PlanServed([]SelectorUse{{Selector: s, Use: use}}, all))
	unknown := found.unansweredResources(incomplete, before)
	// Report the failed groups as a reason, too.
	if incomplete != nil {
		found.Incomplete = true
		found.Reason = strings.TrimPrefix(found.Reason+"; "+incomplete.Error(), "; ")
	}
	switch {
	case s.IsSpecific() && len(unknown) > 0:
		// The group of the resource that was served before did not answer. Keep serving that resource: one that was
		// found elsewhere may be another one.
		return Resolution{Served: unknown, Incomplete: true}, nil
	case !s.IsSpecific():
		found.Served = append(found.Served, unknown...)
	case len(found.Ambiguous) == 0 && len(found.Served) == 0 && incomplete != nil && len(before) == 0:
		// The resource may be in the group that failed, so it cannot be called unserved.
		return found, fmt.Errorf("looking for %s: %w", s, err)
	}
	if len(found.Served) == 0 {
		return found, &unservedError{found.Reason}
	}
	return found, nil
}

// unansweredResources returns the resources in before whose group has failed, unless the server has listed them now.
func (r Resolution) unansweredResources(incomplete *IncompleteError, before []Resource) (all []Resource) {
	if incomplete == nil {
		return nil
	}
	for _, was := range before {
		told := slices.ContainsFunc(
			r.Served, func(other Resource) bool { return other.GroupResource() == was.GroupResource() },
		)
		if incomplete.AffectsGroup(was.Group) && !told {
			all = append(all, was)
		}
	}
	return all
}
