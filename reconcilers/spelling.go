package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/resources"
)

// between separates the parts of a spelling: it stands in no name.
const between = "\x00"

// everything is the part of a spelling for any name.
const everything = "*"

// resourceName is what a plural, a singular, a kind, a short name or a category can be.
var resourceName = regexp.MustCompile(`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`)

// Spelled is the selector of resources by any of their names: parts are as in resources.Parse, where "*" is everything,
// and "category=all" and the like are what Kopf has keywords for. What they mean is asked of the API server.
func Spelled(parts ...string) (Selector, error) {
	s := Selector{Spelling: strings.Join(parts, between)}
	parsed, err := s.parse()
	if err != nil {
		return Selector{}, err
	}
	for _, name := range []string{
		parsed.Name, parsed.Kind, parsed.Plural, parsed.Singular, parsed.Shortcut, parsed.Category,
	} {
		if name != "" && !resourceName.MatchString(name) {
			return Selector{}, fmt.Errorf(
				"invalid resource name %q: it is a plural, a singular, a kind or a short name, such as "+
					"\"kopfexamples\"",
				name,
			)
		}
	}
	if strings.HasPrefix(parts[0], "/") {
		return Selector{}, fmt.Errorf(
			"invalid group and version %q: there is a slash, but no group: write \"v1\" for the core group", parts[0],
		)
	}
	if parsed.Group != nil {
		s.Group = *parsed.Group
		if problems := validation.IsDNS1123Subdomain(s.Group); s.Group != "" && len(problems) > 0 {
			return Selector{}, fmt.Errorf("invalid group %q: %s", s.Group, problems[0])
		}
	}
	if parsed.Version != nil {
		if s.Version = *parsed.Version; s.Version == "" {
			return Selector{}, errors.New("the version is empty: leave it out for the preferred one")
		}
	}
	s.Name = parsed.Name
	if parsed.Group != nil && s.Version != "" && s.Name != "" {
		s.Spelling = "" // all is said
	}
	return s, nil
}

// Chosen is the selector of all resources for which the function is true, in whatever version. Two of them are never
// the same selector.
func Chosen(meant func(resources.Resource) bool) Selector { return Selector{Func: &meant} }

func (s Selector) parse() (resources.Selector, error) {
	if s.Func != nil {
		return resources.Parse([]any{*s.Func}, resources.Selector{})
	}
	var args []any
	var named resources.Selector
	if s.Spelling == "" {
		return resources.Parse(nil, named)
	}
	for _, part := range strings.Split(s.Spelling, between) {
		switch key, value, keyword := strings.Cut(part, "="); {
		case keyword:
			if err := named.Set(key, value); err != nil {
				return named, err
			}
		case part == everything:
			args = append(args, resources.Everything)
		default:
			args = append(args, part)
		}
	}
	return resources.Parse(args, named)
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
