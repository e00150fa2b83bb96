package discovery_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery/discoverytest"
)

// inExample is a selector of example.org/v1.
func inExample(kind, name string) discovery.Selector {
	s := discovery.OfKind(discoverytest.ExampleV1.WithKind(kind))
	s.Name = name
	return s
}

func TestResolve(t *testing.T) {
	widget := discovery.Resource{
		GroupVersionKind: discoverytest.ExampleV1.WithKind("Widget"), Plural: "widgets", Namespaced: true,
		Subresources: []string{"status"},
	}
	cluster := discovery.Resource{GroupVersionKind: discoverytest.ExampleV1.WithKind("Cluster"), Plural: "clusters"}
	served := discoverytest.Served
	tests := map[string]struct {
		reason     string
		kind, name string
		reads      bool
		list       *metav1.APIResourceList
		want       discovery.Resource
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
			want: discovery.Resource{GroupVersionKind: discoverytest.ExampleV1.WithKind("Relic"), Plural: "relics"},
		},
		// Deviation D-dying-crds.
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
			want: discovery.Resource{GroupVersionKind: discoverytest.ExampleV1.WithKind("Leaver"), Plural: "leavers"},
		},
		"AmbiguousName": {
			reason: "one resource's plural is another one's singular: nobody knows which was meant", name: "widgets",
			list: served(
				discoverytest.With(metav1.APIResource{Name: "widgetses", SingularName: "widgets", Kind: "Widgets"}),
			),
			wantError: `example.org/v1 widgets is ambiguous: it may be "widgets" or "widgetses"`,
		},
		"AmbiguousKind": {
			reason: "a kind under two names", kind: "Widget",
			list:      served(discoverytest.With(metav1.APIResource{Name: "oldwidgets", Kind: "Widget"})),
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
			list: served(discoverytest.With(
				metav1.APIResource{Name: "widgetses", SingularName: "widgets", Kind: "Widgets"},
			))},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server := discoverytest.Lister(func(context.Context, string) (*metav1.APIResourceList, error) {
				return tc.list, nil
			})
			selector := inExample(tc.kind, tc.name)
			found, err := discovery.NewInquiry(server, map[discovery.Selector]bool{selector: !tc.reads}).
				Resolve(t.Context(), selector, nil)
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) || !discovery.IsUnserved(err) {
					t.Fatalf("%s: want an error with %q, got %v", tc.reason, tc.wantError, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if !(discovery.Resolution{Served: []discovery.Resource{tc.want}}).Equivalent(found) {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, cmp.Diff([]discovery.Resource{tc.want}, found.Served))
			}
		})
	}
}

func TestSelectorMayMean(t *testing.T) {
	by := inExample
	anything := func(discovery.Resource) bool { return true }
	tests := map[string]struct {
		reason string
		a, b   discovery.Selector
		want   bool
	}{
		"OtherGroup": {
			"two kinds of one name", by("Gadget", ""),
			discovery.OfKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}), false,
		},
		"AnyGroup": {
			"the group is not said", discovery.Selector{Name: "gadgets"}, by("Gadget", ""), true,
		},
		"Everything": {"it means that as well", discovery.Selector{Everything: true}, by("Gadget", ""), true},
		"Category": {
			"whatever it has is not known", discovery.Selector{Category: "all"}, by("Gadget", ""), false,
		},
		"SameCategory": {
			"it has the same", discovery.Selector{Category: "all"}, discovery.Selector{Category: "all"}, true,
		},
		"EverythingByFunc": {
			"what a function takes is not known", discovery.Selector{Everything: true},
			discovery.Selector{Func: &anything},
			false,
		},
		"OtherVersion": {
			"versions are views of the same objects", by("Gadget", ""),
			discovery.OfKind(schema.GroupVersionKind{Group: "example.org", Version: "v2", Kind: "Gadget"}), true,
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
			if there, back := tc.a.MayMean(tc.b), tc.b.MayMean(tc.a); there != tc.want || back != tc.want {
				t.Errorf("%s: %s and %s: got %v and %v", tc.reason, tc.a, tc.b, there, back)
			}
		})
	}
}

func TestInquiryAsksOnce(t *testing.T) {
	asked := 0
	i := discovery.NewInquiry(discoverytest.Lister(func(context.Context, string) (*metav1.APIResourceList, error) {
		if asked++; asked == 1 {
			return nil, errors.New("the connection is lost")
		}
		return discoverytest.Served(), nil
	}), nil)
	for _, name := range []string{"widgets", "widget", "Widget"} {
		_, err := i.Resolve(t.Context(), inExample("", name), nil)
		if err == nil || discovery.IsUnserved(err) {
			t.Errorf("%s: what is not known is neither there nor not there: %v", name, err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times: selectors of one kind could be answered differently", asked)
	}
}
