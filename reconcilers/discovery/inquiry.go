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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/transport"
)

// Inquiry is one round of discovery. It requests each document once, and uses the answer for the whole round, so that
// two selectors of one resource find it together or not at all.
type Inquiry struct {
	server Getter
	writes map[Selector]bool
	heard  map[string]answer
	scans  map[string]scan
	delay  time.Duration
}

type answer struct {
	data []byte
	err  error
}

type scan struct {
	found []Resource
	err   error
}

// NewInquiry begins a round. The map writes marks the selectors whose handlers write to the objects, be it only their
// progress.
func NewInquiry(server Getter, writes map[Selector]bool) *Inquiry {
	return &Inquiry{server: server, writes: writes, heard: map[string]answer{}, scans: map[string]scan{}}
}

// Get gets a document, from the API server the first time.
func (i *Inquiry) Get(ctx context.Context, path string) ([]byte, error) {
	if known, asked := i.heard[path]; asked {
		return known.data, known.err
	}
	var is answer
	is.data, is.err = i.server.Get(ctx, path)
	i.delay = max(i.delay, transport.RetryAfter(is.err))
	i.heard[path] = is
	return is.data, is.err
}

// RetryAfter is the longest delay that the API server asked for in this round; zero if it did not.
func (i *Inquiry) RetryAfter() time.Duration { return i.delay }

// Resolve gives the resources that the selector means. It keeps those of before where the server does not answer. An
// error for which IsUnserved is true says that the server does not serve the resource; any other error says nothing
// about it.
func (i *Inquiry) Resolve(ctx context.Context, s Selector, before []Resource) (Resolution, error) {
	if !s.direct() {
		return i.search(ctx, s, before)
	}
	list, err := i.list(ctx, s.groupVersion())
	if err != nil {
		return Resolution{}, fmt.Errorf("listing the resources of %s: %w", s.groupVersion(), err)
	}
	return resolve(s, list, i.writes[s])
}

// list gives the resources of one version.
func (i *Inquiry) list(ctx context.Context, gv schema.GroupVersion) ([]Resource, error) {
	v := groupVersion{GroupVersion: gv, path: "/apis/" + gv.String()}
	if gv.Group == "" {
		v.path = "/api/" + gv.Version
	}
	data, err := i.Get(ctx, v.path)
	switch {
	case err != nil:
		return nil, err
	case data == nil:
		return nil, &unservedError{"the API server has no such group and version"}
	}
	var list metav1.APIResourceList
	if err := decode(data, nil, v.path, &list); err != nil {
		return nil, err
	}
	return patchable(v.resourcesOf(list)), nil
}

// discovered gives the resources of a group, or of all groups.
func (i *Inquiry) discovered(ctx context.Context, group Part) ([]Resource, error) {
	key, groups := "*", []string(nil)
	if group.Given {
		key, groups = "group "+group.Text, []string{group.Text}
	}
	if heard, asked := i.scans[key]; asked {
		return heard.found, heard.err
	}
	var heard scan
	heard.found, heard.err = Discover(ctx, i, groups...)
	heard.found = patchable(heard.found)
	i.scans[key] = heard
	return heard.found, heard.err
}

// search resolves a selector that leaves the group or the version open, or means more than one resource.
func (i *Inquiry) search(ctx context.Context, s Selector, before []Resource) (Resolution, error) {
	all, err := i.discovered(ctx, s.Group)
	var incomplete *IncompleteError
	if err != nil && !errors.As(err, &incomplete) {
		return Resolution{}, fmt.Errorf("looking for %s: %w", s, err)
	}
	use := Watching
	if i.writes[s] {
		use = Patching
	}
	found := resolutionOf(Serve([]Want{{Selector: s, Use: use}}, all))
	unknown := found.unknown(incomplete, before)
	if incomplete != nil {
		found.Incomplete = true
		found.Reason = strings.TrimPrefix(found.Reason+"; "+incomplete.Error(), "; ")
	}
	switch {
	case s.Specific() && len(unknown) > 0:
		return Resolution{Served: unknown, Incomplete: true}, nil
	case !s.Specific():
		found.Served = append(found.Served, unknown...)
	case len(found.Ambiguous) == 0 && len(found.Served) == 0 && incomplete != nil && len(before) == 0:
		return found, fmt.Errorf("looking for %s: %w", s, err)
	}
	if len(found.Served) == 0 {
		return found, &unservedError{found.Reason}
	}
	return found, nil
}

// unknown are the resources of before of whose group the server did not tell all, unless it told of them.
func (r Resolution) unknown(incomplete *IncompleteError, before []Resource) (all []Resource) {
	if incomplete == nil {
		return nil
	}
	for _, was := range before {
		told := slices.ContainsFunc(
			r.Served, func(other Resource) bool { return other.GroupResource() == was.GroupResource() },
		)
		if incomplete.AboutGroup(was.Group) && !told {
			all = append(all, was)
		}
	}
	return all
}
