package discovery_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/test/kits/discoverytest"
)

// exampleSelector returns a selector of example.org/v1.
func exampleSelector(kind, name string) discovery.Selector {
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
	served := discoverytest.ServedResources
	tests := map[string]struct {
		reason     string
		kind, name string
		reads      bool
		list       *metav1.APIResourceList
		want       discovery.Resource
		wantError  string
	}{
		"UnknownKind": {
			reason: "an unknown kind is not served, as its CRD may come later",
			kind:   "Gadget", list: served(), wantError: `no resource named "Gadget"`,
		},
		"UnknownName": {
			reason: "an unknown name is not served, as its CRD may come later",
			name:   "gadgets", list: served(), wantError: `no resource named "gadgets"`,
		},
		"PluralAsKind": {reason: "a plural is not accepted as a kind",
			kind: "widgets", list: served(), wantError: "no resource named"},
		"WrongCase": {
			reason: "a name in the wrong case is not accepted, as in Kopf",
			name:   "Widgets", list: served(), wantError: "no resource named",
		},
		"Nothing": {
			reason: "an empty group is not served, as its CRDs may come later", kind: "Widget",
			list: &metav1.APIResourceList{}, wantError: "no resource named",
		},
		"Subresource": {
			reason: "a subresource is not a resource", name: "widgets/status", list: served(),
			wantError: "no resource named",
		},
		"SubresourceKind": {
			reason: "the kind of a subresource is not a resource",
			kind:   "Scale", list: served(), wantError: "no resource named",
		},
		"NoList": {
			reason: "a resource without the verb list is not served", kind: "Review", list: served(),
			wantError: `does not support "list"`,
		},
		"NoPatch": {
			reason: "a resource without the verb patch is not served for writers", name: "relics", list: served(),
			wantError: `does not support "patch"`,
		},
		"NoPatchToRead": {
			reason: "a resource without the verb patch is served for readers",
			name:   "relics", reads: true, list: served(),
			want: discovery.Resource{GroupVersionKind: discoverytest.ExampleV1.WithKind("Relic"), Plural: "relics"},
		},
		// Deviation D-dying-crds.
		"Leaving": {
			reason: "a resource of a CRD that is being deleted is served, as its objects may need patches",
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
			reason: "a name that is a plural and another singular is ambiguous", name: "widgets",
			list: served(
				discoverytest.WithResource(metav1.APIResource{Name: "widgetses", SingularName: "widgets",
					Kind: "Widgets"}),
			),
			wantError: `example.org/v1 widgets is ambiguous: it may be "widgets" or "widgetses"`,
		},
		"AmbiguousKind": {
			reason: "a kind under two names is ambiguous", kind: "Widget",
			list:      served(discoverytest.WithResource(metav1.APIResource{Name: "oldwidgets", Kind: "Widget"})),
			wantError: "ambiguous",
		},
		"Kind":   {reason: "a resource is found by its kind", kind: "Widget", list: served(), want: widget},
		"Plural": {reason: "a resource is found by its plural", name: "widgets", list: served(), want: widget},
		"Singular": {reason: "a resource is found by its singular, as in kubectl",
			name: "widget", list: served(), want: widget},
		"KindAsName": {reason: "a resource is found by its kind as a name",
			name: "Widget", list: served(), want: widget},
		"SingularLeftOut": {
			reason: "a missing singular is the kind in lower case", name: "cluster", list: served(), want: cluster,
		},
		"ClusterScoped": {
			reason: "a cluster-scoped resource does not get the status subresource of another one",
			kind:   "Cluster", list: served(),
			want: cluster,
		},
		"OneOfTheSameName": {reason: "a kind is not ambiguous if only its name is", kind: "Widget", want: widget,
			list: served(discoverytest.WithResource(
				metav1.APIResource{Name: "widgetses", SingularName: "widgets", Kind: "Widgets"},
			))},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server := discoverytest.Lister(func(context.Context, string) (*metav1.APIResourceList, error) {
				return tc.list, nil
			})
			selector := exampleSelector(tc.kind, tc.name)
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
			if !(discovery.Resolution{Served: []discovery.Resource{tc.want}}).IsEquivalent(found) {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, cmp.Diff([]discovery.Resource{tc.want}, found.Served))
			}
		})
	}
}

func TestSelectorMayMean(t *testing.T) {
	by := exampleSelector
	anything := func(discovery.Resource) bool { return true }
	tests := map[string]struct {
		reason string
		a, b   discovery.Selector
		want   bool
	}{
		"OtherGroup": {
			"the same kind in two groups is not the same", by("Gadget", ""),
			discovery.OfKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}), false,
		},
		"AnyGroup": {
			"a selector without a group may mean any group",
			discovery.Selector{Name: "gadgets"}, by("Gadget", ""), true,
		},
		"Everything": {"a selector of everything may mean any resource",
			discovery.Selector{Everything: true}, by("Gadget", ""), true},
		"Category": {
			"a category may not mean a kind, as its members are unknown",
			discovery.Selector{Category: "all"}, by("Gadget", ""), false,
		},
		"SameCategory": {
			"a category may mean the same category",
			discovery.Selector{Category: "all"}, discovery.Selector{Category: "all"}, true,
		},
		"EverythingByFunc": {
			"everything may not mean a function, as its resources are unknown", discovery.Selector{Everything: true},
			discovery.Selector{Func: &anything},
			false,
		},
		"OtherVersion": {
			"two versions may mean the same objects", by("Gadget", ""),
			discovery.OfKind(schema.GroupVersionKind{Group: "example.org", Version: "v2", Kind: "Gadget"}), true,
		},
		"OtherKind": {"two kinds are not the same", by("Gadget", ""), by("Widget", ""), false},
		"OtherName": {"two names are not the same", by("", "gadgets"), by("", "widgets"), false},
		"KindAndOther": {"a kind and the plural of another one are not the same",
			by("Gadget", ""), by("", "widgets"), false},
		"Same":            {"a kind may mean the same kind", by("Gadget", ""), by("Gadget", ""), true},
		"KindAndPlural":   {"a kind may mean its plural", by("Policy", ""), by("", "policies"), true},
		"PluralAndKind":   {"a plural may mean its kind", by("", "gadgets"), by("Gadget", ""), true},
		"KindAndSingular": {"a kind may mean its singular", by("Gadget", ""), by("", "gadget"), true},
		"KindAndKind":     {"a kind may mean itself as a name", by("Gadget", ""), by("", "Gadget"), true},
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
		return discoverytest.ServedResources(), nil
	}), nil)
	for _, name := range []string{"widgets", "widget", "Widget"} {
		_, err := i.Resolve(t.Context(), exampleSelector("", name), nil)
		if err == nil || discovery.IsUnserved(err) {
			t.Errorf("%s: want an error that leaves open whether it is served, got %v", name, err)
		}
	}
	if asked != 1 {
		t.Errorf("want one request, as the answers of several may differ, got %d", asked)
	}
}
