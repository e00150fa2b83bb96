package discovery_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/test/kits/discoverytest"
)

func apiDocuments() *discoverytest.Documents {
	verbs := metav1.Verbs{"list", "watch", "patch"}
	one := func(name, kind string, short ...string) metav1.APIResource {
		return metav1.APIResource{
			Name: name, SingularName: strings.ToLower(kind), Kind: kind, Namespaced: true, Verbs: verbs,
			ShortNames: short,
		}
	}
	group := func(name string) metav1.APIGroup {
		v := metav1.GroupVersionForDiscovery{GroupVersion: name + "/v1", Version: "v1"}
		return metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
	}
	list := func(all ...metav1.APIResource) metav1.APIResourceList {
		return metav1.APIResourceList{APIResources: all}
	}
	return &discoverytest.Documents{ByPath: map[string]any{
		"/api": metav1.APIVersions{Versions: []string{"v1"}}, "/api/v1": list(one("pods", "Pod", "po")),
		"/apis": metav1.APIGroupList{
			Groups: []metav1.APIGroup{group("kopf.dev"), group("metrics.k8s.io"), group("zalando.org")},
		},
		"/apis/kopf.dev/v1": list(
			one("kopfexamples", "KopfExample", "kex"), one("lonelies", "Lonely"),
			metav1.APIResource{Name: "lonelies/status", Kind: "Lonely"},
		),
		"/apis/zalando.org/v1": list(
			one("kopfexamples", "KopfExample", "kex"),
		), "/apis/metrics.k8s.io/v1": list(one("pods", "PodMetrics")),
	}}
}

func TestSpellings(t *testing.T) {
	tests := map[string]struct {
		reason       string
		parts        []string
		want         string // the resource
		wantError    string
		wantRequests int
	}{
		"Nothing": {
			reason: "a name that no group has is not served",
			parts:  []string{"nothings"}, wantError: "there is no such resource", wantRequests: 6,
		},
		"Ambiguous": {
			reason: "a name that two groups have is ambiguous", parts: []string{"kex"}, wantError: "ambiguous",
			wantRequests: 6,
		},
		"AnotherGroup": {
			reason: "only the named group is requested", parts: []string{"nothings.kopf.dev"},
			wantError: "there is no such resource", wantRequests: 2,
		},
		"Core": {reason: "the core group has precedence over others",
			parts: []string{"pods"}, want: "/v1, Kind=Pod", wantRequests: 6},
		"CoreKind": {
			reason: "a kind that only one group has is found", parts: []string{"PodMetrics"},
			want: "metrics.k8s.io/v1, Kind=PodMetrics", wantRequests: 6,
		},
		"NameAndGroup": {
			reason: "a short name with its group is found", parts: []string{"kex.zalando.org"},
			want: "zalando.org/v1, Kind=KopfExample", wantRequests: 2,
		},
		"GroupThenName": {
			reason: "a kind after its group is found", parts: []string{"kopf.dev", "KopfExample"},
			want: "kopf.dev/v1, Kind=KopfExample", wantRequests: 2,
		},
		"Kind": {
			reason: "a kind is accepted as a name",
			parts:  []string{"Lonely"}, want: "kopf.dev/v1, Kind=Lonely", wantRequests: 6,
		},
		"NameVersion": {
			reason: "a version without a group is accepted after the name",
			parts:  []string{"pods.v1"}, want: "/v1, Kind=Pod", wantRequests: 6,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := discovery.ParseSpelling(tc.parts...)
			if err != nil {
				t.Fatal(err)
			}
			server := apiDocuments()
			found, err := discovery.NewInquiry(server, nil).Resolve(t.Context(), s, nil)
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) || !discovery.IsUnserved(err) {
					t.Errorf("%s: got %v, want an error of an unserved resource with %q", tc.reason, err, tc.wantError)
				}
			} else if err != nil || kindsOf(found.Served) != tc.want {
				t.Errorf("%s: got %s, error %v", tc.reason, kindsOf(found.Served), err)
			}
			if len(server.RequestedPaths) != tc.wantRequests {
				t.Errorf("%s: wrong number of requests: %v", tc.reason, server.RequestedPaths)
			}
		})
	}
}

func TestSpellingsOnABadConnection(t *testing.T) {
	s, err := discovery.ParseSpelling("kex")
	if err != nil {
		t.Fatal(err)
	}
	server := &discoverytest.Documents{Err: errors.New("refused")}
	_, err = discovery.NewInquiry(server, nil).Resolve(t.Context(), s, nil)
	if err == nil || discovery.IsUnserved(err) || !strings.Contains(err.Error(), "kex") {
		t.Errorf("want an error that does not call the resource unserved, got %v", err)
	}
}

func TestSpelledInFull(t *testing.T) {
	want := discovery.Selector{Group: discovery.NewSelectorPart("kopf.dev"), Version: discovery.NewSelectorPart("v1"),
		Name: "kex"}
	for _, parts := range [][]string{{"kex.v1.kopf.dev"}, {"kopf.dev/v1", "kex"}, {"kopf.dev", "v1", "kex"}} {
		got, err := discovery.ParseSpelling(parts...)
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%v needs no search: error %v, -want, +got:\n%s", parts, err, d)
		}
	}
}

func kindsOf(all []discovery.Resource) string {
	var kinds []string
	for _, r := range all {
		kinds = append(kinds, r.GroupVersionKind.String())
	}
	return strings.Join(kinds, "; ")
}
