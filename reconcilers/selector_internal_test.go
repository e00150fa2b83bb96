package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	exampleV1 = schema.GroupVersion{Group: "example.org", Version: "v1"}
	allVerbs  = metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
)

// served is what the tests' API server has of example.org/v1, changed as a case needs it.
func served(change ...func(list *metav1.APIResourceList)) *metav1.APIResourceList {
	list := &metav1.APIResourceList{GroupVersion: "example.org/v1", APIResources: []metav1.APIResource{
		{Name: "widgets/scale", Kind: "Scale", Group: "autoscaling", Version: "v1", Namespaced: true,
			Verbs: metav1.Verbs{"get", "patch"}},
		{Name: "widgets", SingularName: "widget", Kind: "Widget", Namespaced: true, Verbs: allVerbs,
			ShortNames: []string{"wd"}},
		{Name: "widgets/status", Kind: "Widget", Namespaced: true, Verbs: metav1.Verbs{"get", "patch", "update"}},
		{Name: "clusters", Kind: "Cluster", Verbs: allVerbs},
		{Name: "reviews", SingularName: "review", Kind: "Review", Verbs: metav1.Verbs{"create"}},
		{Name: "relics", SingularName: "relic", Kind: "Relic", Verbs: metav1.Verbs{"list", "watch"}},
	}}
	for _, f := range change {
		f(list)
	}
	return list
}

func withAnother(r metav1.APIResource) func(*metav1.APIResourceList) {
	r.Verbs = allVerbs
	return func(list *metav1.APIResourceList) { list.APIResources = append(list.APIResources, r) }
}

func TestResolve(t *testing.T) {
	widget := Resource{
		GroupVersionKind: exampleV1.WithKind("Widget"), Plural: "widgets", Namespaced: true, StatusSubresource: true,
	}
	cluster := Resource{GroupVersionKind: exampleV1.WithKind("Cluster"), Plural: "clusters"}
	tests := map[string]struct {
		reason     string
		kind, name string
		reads      bool
		list       *metav1.APIResourceList
		want       Resource
		wantError  string
	}{
		"UnknownKind": {
			reason: "its CRD may come later", kind: "Gadget", list: served(), wantError: `no resource named "Gadget"`,
		},
		"UnknownName": {
			reason: "its CRD may come later", name: "gadgets", list: served(), wantError: `no resource named "gadgets"`,
		},
		"PluralAsKind": {reason: "a kind is exact", kind: "widgets", list: served(), wantError: "no resource named"},
		"WrongCase": {
			reason: "names are exact, as in Kopf", name: "Widgets", list: served(), wantError: "no resource named",
		},
		"Nothing": {
			reason: "a group may be empty while its CRDs are installed", kind: "Widget",
			list: &metav1.APIResourceList{}, wantError: "no resource named",
		},
		"Subresource": {
			reason: "a subresource is no object", name: "widgets/status", list: served(),
			wantError: "no resource named",
		},
		"SubresourceKind": {
			reason: "nor does its kind make it one", kind: "Scale", list: served(), wantError: "no resource named",
		},
		"NoList": {
			reason: "what cannot be listed cannot be known", kind: "Review", list: served(),
			wantError: `does not support "list"`,
		},
		"NoPatch": {
			reason: "what cannot be patched cannot be remembered", name: "relics", list: served(),
			wantError: `does not support "patch"`,
		},
		"NoPatchToRead": {
			reason: "handlers of events need to write nothing", name: "relics", reads: true, list: served(),
			want: Resource{GroupVersionKind: exampleV1.WithKind("Relic"), Plural: "relics"},
		},
		"Leaving": {
			reason: "a CRD that is being deleted waits for objects with finalizers, which only a patch removes",
			name:   "leavers",
			list: served(func(l *metav1.APIResourceList) {
				l.APIResources = append(
					l.APIResources,
					metav1.APIResource{
						Name: "leavers", Kind: "Leaver",
						Verbs: metav1.Verbs{"delete", "deletecollection", "get", "list", "watch"},
					},
				)
			}),
			want: Resource{GroupVersionKind: exampleV1.WithKind("Leaver"), Plural: "leavers"},
		},
		"AmbiguousName": {
			reason: "one resource's plural is another one's singular: nobody knows which was meant", name: "widgets",
			list: served(
				withAnother(metav1.APIResource{Name: "widgetses", SingularName: "widgets", Kind: "Widgets"}),
			),
			wantError: `example.org/v1 widgets is ambiguous: it may be "widgets" or "widgetses"`,
		},
		"AmbiguousKind": {
			reason: "a kind under two names", kind: "Widget",
			list:      served(withAnother(metav1.APIResource{Name: "oldwidgets", Kind: "Widget"})),
			wantError: "ambiguous",
		},
		"Kind":       {reason: "typed selections have the kind", kind: "Widget", list: served(), want: widget},
		"Plural":     {reason: "the usual name", name: "widgets", list: served(), want: widget},
		"Singular":   {reason: "as kubectl takes it", name: "widget", list: served(), want: widget},
		"KindAsName": {reason: "as kubectl takes it", name: "Widget", list: served(), want: widget},
		"SingularLeftOut": {
			reason: "it is the kind in small letters then", name: "cluster", list: served(), want: cluster,
		},
		"ClusterScoped": {
			reason: "without namespaces, and without a status subresource of others", kind: "Cluster", list: served(),
			want: cluster,
		},
		"OneOfTheSameName": {reason: "the kind is not ambiguous if only the name is", kind: "Widget", want: widget,
			list: served(withAnother(metav1.APIResource{Name: "widgetses", SingularName: "widgets", Kind: "Widgets"}))},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			found, err := resolve(Selector{GroupVersion: exampleV1, Kind: tc.kind, Name: tc.name}, tc.list, !tc.reads)
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) || !unserved(err) {
					t.Fatalf("%s: want an error with %q, got %v", tc.reason, tc.wantError, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if d := cmp.Diff([]Resource{tc.want}, found.served); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestSelectorMayMean(t *testing.T) {
	gadgets := schema.GroupVersion{Group: "example.org", Version: "v1"}
	by := func(kind, name string) Selector { return Selector{GroupVersion: gadgets, Kind: kind, Name: name} }
	tests := map[string]struct {
		reason string
		a, b   Selector
		want   bool
	}{
		"OtherGroup": {
			"two kinds of one name", by("Gadget", ""),
			Selector{GroupVersion: schema.GroupVersion{Group: "example.com", Version: "v1"}, Kind: "Gadget"}, false,
		},
		"OtherVersion": {
			"versions are views of the same objects", by("Gadget", ""),
			Selector{GroupVersion: schema.GroupVersion{Group: "example.org", Version: "v2"}, Kind: "Gadget"}, true,
		},
		"OtherKind":       {"two kinds", by("Gadget", ""), by("Widget", ""), false},
		"OtherName":       {"two names", by("", "gadgets"), by("", "widgets"), false},
		"KindAndOther":    {"a kind and a plural of another", by("Gadget", ""), by("", "widgets"), false},
		"Same":            {"the same", by("Gadget", ""), by("Gadget", ""), true},
		"KindAndPlural":   {"the usual two spellings", by("Policy", ""), by("", "policies"), true},
		"PluralAndKind":   {"in whatever order", by("", "gadgets"), by("Gadget", ""), true},
		"KindAndSingular": {"the singular", by("Gadget", ""), by("", "gadget"), true},
		"KindAndKind":     {"the kind as a name", by("Gadget", ""), by("", "Gadget"), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.a.MayMean(tc.b); got != tc.want {
				t.Errorf("%s: %s and %s: got %v", tc.reason, tc.a, tc.b, got)
			}
		})
	}
}

func TestInquiryAsksOnce(t *testing.T) {
	asked := 0
	i := newInquiry(lister(func(context.Context, string) (*metav1.APIResourceList, error) {
		if asked++; asked == 1 {
			return nil, errors.New("the connection is lost")
		}
		return served(), nil
	}), nil)
	for _, name := range []string{"widgets", "widget", "Widget"} {
		_, err := i.find(t.Context(), Selector{GroupVersion: exampleV1, Name: name}, nil)
		if err == nil || unserved(err) {
			t.Errorf("%s: what is not known is neither there nor not there: %v", name, err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times: selectors of one kind could be answered differently", asked)
	}
}

// lister answers for groups and versions.
type lister func(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)

// Get is for the paths of discovery.
func (f lister) Get(ctx context.Context, path string) ([]byte, error) {
	gv, ofGroup := strings.CutPrefix(path, "/apis/")
	if !ofGroup {
		return nil, nil
	}
	list, err := f(ctx, gv)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	default:
		return json.Marshal(list)
	}
}
