package discovery_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
)

func TestParse(t *testing.T) {
	type said map[string]any
	for name, tc := range map[string]struct {
		reason string
		args   []any
		want   said
	}{
		"CoreVersion": {
			"v1 alone is a version of the core group", []any{"v1", "pods"},
			said{"group": "", "version": "v1", "any_name": "pods"},
		},
		"OtherVersion": {
			"any other word alone is a group", []any{"v1beta1", "pods"}, said{"group": "v1beta1", "any_name": "pods"},
		},
		"NoGroup": {"a nil group is ignored", []any{nil, "v1", "pods"}, said{"version": "v1", "any_name": "pods"}},
		"NoVersion": {"a nil version is ignored",
			[]any{"apps", nil, "pods"}, said{"group": "apps", "any_name": "pods"}},
		"NilLast": {"nil arguments at the end are ignored", []any{"pods", nil, nil}, said{"any_name": "pods"}},
		"CoreBySlash": {
			"a slash without a group means the core group",
			[]any{"/v1", "pods"}, said{"group": "", "version": "v1", "any_name": "pods"},
		},
		"NilAlone": {"a nil argument before the name is ignored", []any{nil, "pods"}, said{"any_name": "pods"}},
		"EmptyVersion": {
			"an empty version is kept, although no resource has it", []any{"apps", "", "pods"},
			said{"group": "apps", "version": "", "any_name": "pods"},
		},
		"GroupAndVersion": {
			"the last slash separates the group and the version", []any{"a.b/v1", "pods"},
			said{"group": "a.b", "version": "v1", "any_name": "pods"},
		},
		"NothingAfterSlash": {
			"an empty version after a slash is kept", []any{"apps/", "pods"},
			said{"group": "apps", "version": "", "any_name": "pods"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := discovery.ParseSelector(tc.args, discovery.Selector{})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(map[string]any(tc.want), selectorFields(got)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestEmptyVersionMatchesNothing(t *testing.T) {
	s, err := discovery.ParseSelector([]any{"apps", "", "pods"}, discovery.Selector{})
	pods := discovery.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1"}, Plural: "pods", Preferred: true,
	}
	if err != nil || s.Matches(pods) {
		t.Errorf("want an empty version to match nothing, got %v, error %v", s.Matches(pods), err)
	}
	said := discovery.Selector{Group: discovery.NewSelectorPart("apps")}
	if s, err = discovery.ParseSelector([]any{nil, "pods"}, said); err != nil || s.Group.IsSet {
		t.Errorf("want a nil argument to override the keyword, got %v, error %v", s, err)
	}
}

func TestEmptyNames(t *testing.T) {
	for _, keyword := range []string{"kind", "plural", "singular", "shortcut", "category"} {
		if err := (&discovery.Selector{}).SetKeyword(keyword, ""); err == nil ||
			!strings.Contains(err.Error(), keyword) {
			t.Errorf("want an error that names the empty %s, got %v", keyword, err)
		}
	}
}

func TestParseFails(t *testing.T) {
	mine := func(discovery.Resource) bool { return true }
	for want, args := range map[string][]any{
		"too many arguments: 4": {"a", "b", "c", "d"}, "a function stands alone: 1 arguments follow": {mine, "pods"},
	} {
		if _, err := discovery.ParseSelector(args, discovery.Selector{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want %q", err, want)
		}
	}
	if s, err := discovery.ParseSpelling("kind=", "pods"); err == nil {
		t.Errorf("want an error for an empty kind, got %v", s)
	}
}

// documents are the documents of an API server by their paths.
type documents map[string]string

func (d documents) Get(_ context.Context, path string) ([]byte, error) {
	if text, there := d[path]; there {
		return []byte(text), nil
	}
	return nil, nil
}

func TestDiscoverWithoutARoot(t *testing.T) {
	whole := documents{
		"/api": `{"versions":["v1"]}`, "/apis": `{"groups":[{"name":"g","versions":[{"version":"v1"}]}]}`,
	}
	for name, tc := range map[string]struct {
		reason  string
		without string
		groups  []string
		fails   bool
	}{
		"Versions":    {"a missing document of a version is not an error", "none", nil, false},
		"Core":        {"a missing root document of the core group is an error", "/api", nil, true},
		"Groups":      {"a missing root document of all other groups is an error", "/apis", nil, true},
		"CoreOnly":    {"the other groups are not needed for the core group", "/apis", []string{""}, false},
		"GroupsOnly":  {"the core group is not needed for another group", "/api", []string{"g"}, false},
		"NoGroups":    {"no document is needed without any groups", "/api", []string{}, false},
		"OfGroup":     {"a missing root document is an error for a named group", "/apis", []string{"g"}, true},
		"OfCoreAlone": {"a missing root document is an error for the core group alone", "/api", []string{""}, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := documents{}
			for path, text := range whole {
				if path != tc.without {
					server[path] = text
				}
			}
			found, err := discovery.ListResources(t.Context(), server, tc.groups...)
			if (err != nil) != tc.fails || err != nil && !strings.Contains(
				err.Error(), tc.without+": it has no such document",
			) {
				t.Errorf(
					"%s: got %v, error %v, want an error that names %s: %v", tc.reason, found, err, tc.without,
					tc.fails,
				)
			}
		})
	}
}
