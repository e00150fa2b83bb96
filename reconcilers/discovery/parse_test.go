package discovery_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
)

func TestParse(t *testing.T) {
	type said map[string]any
	for name, tc := range map[string]struct {
		reason string
		args   []any
		want   said
	}{
		"CoreVersion": {
			"it is known as a version where it stands alone", []any{"v1", "pods"},
			said{"group": "", "version": "v1", "any_name": "pods"},
		},
		"OtherVersion": {
			"any other word is a group", []any{"v1beta1", "pods"}, said{"group": "v1beta1", "any_name": "pods"},
		},
		"NoGroup":   {"nil is not said", []any{nil, "v1", "pods"}, said{"version": "v1", "any_name": "pods"}},
		"NoVersion": {"nil is not said", []any{"apps", nil, "pods"}, said{"group": "apps", "any_name": "pods"}},
		"NilLast":   {"nil is not said", []any{"pods", nil, nil}, said{"any_name": "pods"}},
		"CoreBySlash": {
			"the core group has no name", []any{"/v1", "pods"}, said{"group": "", "version": "v1", "any_name": "pods"},
		},
		"NilAlone": {"nil is not said", []any{nil, "pods"}, said{"any_name": "pods"}},
		"EmptyVersion": {
			"it is said, though no resource has it", []any{"apps", "", "pods"},
			said{"group": "apps", "version": "", "any_name": "pods"},
		},
		"GroupAndVersion": {
			"they are parted by the last slash", []any{"a.b/v1", "pods"},
			said{"group": "a.b", "version": "v1", "any_name": "pods"},
		},
		"NothingAfterSlash": {
			"an empty version is a version", []any{"apps/", "pods"},
			said{"group": "apps", "version": "", "any_name": "pods"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := discovery.Parse(tc.args, discovery.Selector{})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(map[string]any(tc.want), parsed(got)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestEmptyVersionIsNobodys(t *testing.T) {
	s, err := discovery.Parse([]any{"apps", "", "pods"}, discovery.Selector{})
	pods := discovery.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1"}, Plural: "pods", Preferred: true,
	}
	if err != nil || s.Matches(pods) {
		t.Errorf("an empty version is not the preferred one: got %v, error %v", s.Matches(pods), err)
	}
	said := discovery.Selector{Group: discovery.Given("apps")}
	if s, err = discovery.Parse([]any{nil, "pods"}, said); err != nil || s.Group.Given {
		t.Errorf("an argument goes over what is said besides, also if it is nil: got %v, error %v", s, err)
	}
}

func TestEmptyNames(t *testing.T) {
	for _, keyword := range []string{"kind", "plural", "singular", "shortcut", "category"} {
		if err := (&discovery.Selector{}).Set(keyword, ""); err == nil || !strings.Contains(err.Error(), keyword) {
			t.Errorf("an empty %s is a mistake, to be told by name: got %v", keyword, err)
		}
	}
}

func TestParseFails(t *testing.T) {
	mine := func(discovery.Resource) bool { return true }
	for want, args := range map[string][]any{
		"too many arguments: 4": {"a", "b", "c", "d"}, "a function stands alone: 1 arguments follow": {mine, "pods"},
	} {
		if _, err := discovery.Parse(args, discovery.Selector{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want %q", err, want)
		}
	}
	if s, err := discovery.Spelled("kind=", "pods"); err == nil {
		t.Errorf("an empty kind is a mistake: got %v", s)
	}
}

// documents are what an API server has.
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
		"Versions":    {"a version may go", "none", nil, false},
		"Core":        {"there is not nothing, but nothing is known", "/api", nil, true},
		"Groups":      {"there is not nothing, but nothing is known", "/apis", nil, true},
		"CoreOnly":    {"groups are not asked for", "/apis", []string{""}, false},
		"GroupsOnly":  {"the core is not asked for", "/api", []string{"g"}, false},
		"NoGroups":    {"nothing is asked for", "/api", []string{}, false},
		"OfGroup":     {"its group may not be known", "/apis", []string{"g"}, true},
		"OfCoreAlone": {"the core is not known", "/api", []string{""}, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := documents{}
			for path, text := range whole {
				if path != tc.without {
					server[path] = text
				}
			}
			found, err := discovery.Discover(t.Context(), server, tc.groups...)
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
