package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/resources"
)

// between separates the parts of a spelling: it stands in no name.
const between = "\x00"

// resourceName is what a plural, a singular, a kind or a short name can be.
var resourceName = regexp.MustCompile(`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`)

// Spelled is the selector of a resource by any of its names: see resources.Parse for the parts. It must be one resource
// that is named: which one is asked of the API server.
func Spelled(parts ...string) (Selector, error) {
	s := Selector{Spelling: strings.Join(parts, between)}
	parsed, err := s.parse()
	if err != nil {
		return Selector{}, err
	}
	if !resourceName.MatchString(parsed.Name) {
		return Selector{}, fmt.Errorf("invalid resource name %q: it is a plural, a singular, a kind or a short name, such as \"kopfexamples\"", parsed.Name)
	}
	if parsed.Group != nil {
		s.Group = *parsed.Group
		if problems := validation.IsDNS1123Subdomain(s.Group); s.Group != "" && len(problems) > 0 {
			return Selector{}, fmt.Errorf("invalid group %q: %s", s.Group, problems[0])
		}
	}
	if strings.HasPrefix(parts[0], "/") {
		return Selector{}, fmt.Errorf("invalid group and version %q: there is a slash, but no group: write \"v1\" for the core group", parts[0])
	}
	s.Version, s.Name = parsed.Version, parsed.Name
	if parsed.Group != nil && s.Version != "" {
		s.Spelling = "" // all is said
	}
	return s, nil
}

func (s Selector) parse() (resources.Selector, error) {
	var args []any
	if s.Spelling == "" {
		return resources.Parse(nil, resources.Selector{})
	}
	for _, part := range strings.Split(s.Spelling, between) {
		args = append(args, part)
	}
	return resources.Parse(args, resources.Selector{})
}

// grouped tells whether the selector says of which group it is.
func (s Selector) grouped() bool {
	if s.Spelling == "" {
		return true
	}
	parsed, err := s.parse()
	return err == nil && parsed.Group != nil
}

// getter asks the API server for documents of discovery.
type getter struct{ discovery.DiscoveryInterface }

// Get gives nil for what is not there.
func (g getter) Get(ctx context.Context, path string) ([]byte, error) {
	data, err := g.RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return data, err
}

// discovered is what there is in a group, or in all of them; each is asked for once in a round.
func (i inquiry) discovered(ctx context.Context, s resources.Selector) ([]resources.Resource, error) {
	key, groups := "*", []string(nil)
	if s.Group != nil {
		key, groups = "group "+*s.Group, []string{*s.Group}
	}
	if heard, asked := i.scans[key]; asked {
		return heard.found, heard.err
	}
	var heard scan
	if i.server == nil {
		heard.err = errors.New("there is no API server to ask")
	} else {
		heard.found, heard.err = resources.Discover(ctx, i.server, groups...)
	}
	i.scans[key] = heard
	return heard.found, heard.err
}

type scan struct {
	found []resources.Resource
	err   error
}

// spelled finds the one resource that a spelling means.
func (i inquiry) spelled(ctx context.Context, s Selector) (Resource, error) {
	parsed, err := s.parse()
	if err != nil {
		return Resource{}, err
	}
	all, err := i.discovered(ctx, parsed)
	if err != nil {
		return Resource{}, fmt.Errorf("looking for %s: %w", s, err)
	}
	plan := resources.Serve([]resources.Want{{Selector: parsed, Use: resources.Patching}}, all)
	if len(plan.Watched) == 1 {
		r := plan.Watched[0]
		return Resource{
			GroupVersionKind: r.GroupVersionKind, Plural: r.Plural, Namespaced: r.Namespaced,
			StatusSubresource: slices.Contains(r.Subresources, "status"),
		}, nil
	}
	var reasons []string
	for _, warning := range plan.Warnings {
		reasons = append(reasons, warning.Reason)
	}
	return Resource{}, &unservedError{strings.Join(reasons, "; ")}
}
