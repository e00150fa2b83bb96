package admission_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/webhooks/admission"
)

// TestLabelsOfNamespacesInEntries shows the namespace selectors of entries. An entry for Namespaces and other objects
// keeps it, and the API server compares it with the labels of a Namespace itself. All requirements for a key apply.
func TestLabelsOfNamespacesInEntries(t *testing.T) {
	places := memapi.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}
	both := newRegistration(places, "v", "no")
	both.Selector = discovery.ByFunc(func(r discovery.Resource) bool {
		return r.Plural == "widgets" || r.Plural == "namespaces"
	})
	twin := func(r memapi.Resource) admission.RegisteredHandler {
		one := newRegistration(r, "v", "no")
		one.Handler.FunctionKey = 7
		return one
	}
	for name, tc := range map[string]struct {
		reason        string
		registrations []admission.RegisteredHandler
		names         string
		labels        string
		want          string
	}{
		"OneSelection": {
			"a selection of Namespaces and other objects keeps the labels",
			[]admission.RegisteredHandler{both}, "*", "team=x", "team in [x]",
		},
		"TwoSelections": {
			"an entry of two selections keeps the labels",
			[]admission.RegisteredHandler{twin(widgets), twin(places)}, "*", "team=x", "team in [x]",
		},
		"Names": {
			"names of namespaces are left out, as they would hide Namespaces",
			[]admission.RegisteredHandler{twin(widgets), twin(places)}, "team-a", "team=x", "team in [x]",
		},
		"NamespacesAlone": {
			"a selection of Namespaces alone does not get a selector",
			[]admission.RegisteredHandler{newRegistration(places, "v", "no")}, "*", "team=x", "",
		},
		"OneKey": {
			"all requirements for one key are kept",
			[]admission.RegisteredHandler{newRegistration(widgets, "v", "no")}, "*", "team=x,team=y,!paused",
			"paused doesnotexist [], team in [x], team in [y]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				by, err := labels.Parse(tc.labels)
				if err != nil {
					t.Fatal(err)
				}
				server := cluster(widgets, places)
				o := options(server, tc.registrations...)
				o.ReviewedNamespaces = func() namespaces.NamespaceRule {
					served := namespaces.Patterns{namespaces.ParsePattern(tc.names)}
					return namespaces.NamespaceRule{Served: served.WithLabels(by)}
				}
				r := start(t, o)
				var got []string
				if selector := entries(t, server,
					validatingResource)["v.ops.example.org"].NamespaceSelector; selector != nil {
					for _, one := range selector.MatchExpressions {
						operator := strings.ToLower(string(one.Operator))
						got = append(got, fmt.Sprint(one.Key, " ", operator, " ", one.Values))
					}
				}
				if got := strings.Join(got, ", "); got != tc.want {
					t.Errorf("%s: got the selector %q, want %q", tc.reason, got, tc.want)
				}
				r.stop(t)
			})
		})
	}
}
