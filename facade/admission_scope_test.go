package kopf_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

func namespaceRequirement(operator metav1.LabelSelectorOperator, names ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: corev1.LabelMetadataName, Operator: operator, Values: names}
}

// TestNamespacesOfAdmission shows that entries select the operator's namespaces and that the operator admits
// objects of other namespaces without a call. Label selectors are in the entries only. Deviation:
// D-webhook-namespaces.
func TestNamespacesOfAdmission(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	const in, notIn = metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn
	type requirements = []metav1.LabelSelectorRequirement
	asKopf := kopf.AsKopf()
	asKopf.Namespaces = []string{"shop"}
	excluding := func(names ...string) kopf.AdmissionSettings {
		return kopf.AdmissionSettings{ExcludedNamespaces: append([]string{}, names...)}
	}
	for name, tc := range map[string]struct {
		reason            string
		settings          kopf.Settings
		selector          requirements
		hasMatchCondition bool // whether a match condition restricts the namespaces as well
		wantReviewed      string
	}{
		"everywhere": {
			"the operator's own namespace is excluded by default", kopf.Settings{},
			requirements{namespaceRequirement(notIn, "team-a")}, false, "kube-system shop team-b"},
		"names": {
			"the entry selects the named namespaces", kopf.Settings{Namespaces: []string{"team-b", "shop"}},
			requirements{namespaceRequirement(in, "shop", "team-b"), namespaceRequirement(notIn, "team-a")}, false,
			"shop team-b"},
		"own name": {
			"the operator's own namespace is served if it is named", kopf.Settings{Namespaces: []string{"team-a"}},
			requirements{namespaceRequirement(in, "team-a")}, false, "team-a"},
		"patterns": {
			"a pattern of namespaces becomes a match condition", kopf.Settings{Namespaces: []string{"team-*"}},
			requirements{namespaceRequirement(notIn, "team-a")}, true, "team-b"},
		"none excluded": {
			"an empty list excludes no namespace", kopf.Settings{Admission: excluding()}, nil, false,
			"kube-system shop team-a team-b"},
		"excluded": {
			"a list of exclusions replaces the default", kopf.Settings{Admission: excluding("shop", "kube-*")},
			requirements{namespaceRequirement(notIn, "shop")}, true, "team-a team-b"},
		"labels": {
			"the entries select by labels, the operator by names only",
			kopf.Settings{
				NamespaceLabels: "team in (b,c),!paused", Namespaces: []string{"team-*"}, Admission: excluding(),
			},
			requirements{
				{Key: "paused", Operator: metav1.LabelSelectorOpDoesNotExist},
				{Key: "team", Operator: in, Values: []string{"b", "c"}},
			}, true, "team-a team-b"},
		"labels alone": {
			"labels without names need no match condition",
			kopf.Settings{NamespaceLabels: "team=b", Admission: excluding()},
			requirements{{Key: "team", Operator: in, Values: []string{"b"}}}, false,
			"kube-system shop team-a team-b"},
		"AsKopf": {
			"entries as in Kopf have no selector, and the operator filters by namespace", asKopf, nil, false, "shop"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.settings.Admission.Managed, tc.settings.Admission.Service = "shared.example.org", "team-a/webhook"
				op, api := kopf.New("test.example.org", tc.settings), newAdmissionAPI()
				api.Install(widgetResource)
				for _, name := range []string{"shop", "team-a", "team-b"} {
					labels := map[string]any{"team": strings.TrimPrefix(name, "team-")}
					api.Put(allNamespaces, map[string]any{"metadata": map[string]any{"name": name, "labels": labels}})
				}
				api.Install(memapi.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"})
				kopf.For(op, &Widget{}).Validate("v", func(context.Context, *Admission) error {
					return kopf.Deny(http.StatusForbidden, "judged")
				})
				p := startProgram(t, api, op)
				time.Sleep(5 * time.Second)
				for _, entry := range p.entries(t, validatingResource) {
					var got requirements
					if entry.NamespaceSelector != nil {
						got = entry.NamespaceSelector.MatchExpressions
					}
					if d := cmp.Diff(tc.selector, got); d != "" {
						t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
					}
					matched := false
					for _, one := range entry.MatchConditions {
						matched = matched || one.Name == "in-namespaces"
					}
					if matched != tc.hasMatchCondition {
						t.Errorf("%s: conditions %v", tc.reason, entry.MatchConditions)
					}
				}
				path, judged := "/test.example.org/validate/v", []string{}
				if name == "AsKopf" {
					path = "/v"
				}
				for _, namespace := range []string{"kube-system", "shop", "team-a", "team-b"} {
					status, verdict := p.post(t, path, request(map[string]any{"namespace": namespace}))
					if status != http.StatusOK {
						t.Errorf("%s: status %d", namespace, status)
					}
					if !verdict.Allowed {
						judged = append(judged, namespace)
					}
				}
				if got := strings.Join(judged, " "); got != tc.wantReviewed {
					t.Errorf("%s: judged: got %q, want %q", tc.reason, got, tc.wantReviewed)
				}
				if err := p.stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestNamespacesThemselvesAreReviewed shows that Namespace objects are selected by a match condition, as a
// namespace selector would apply to their own labels, and that all of them call the handler.
func TestNamespacesThemselvesAreReviewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op, api := kopf.New("test.example.org", kopf.Settings{
			Namespaces: []string{"shop"}, AddToScheme: runtime.SchemeBuilder{corev1.AddToScheme},
			Admission: kopf.AdmissionSettings{Managed: "shared.example.org", Service: "team-a/webhook"},
		}), newAdmissionAPI()
		api.Install(memapi.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"})
		kopf.For(op, &corev1.Namespace{}).Validate("v",
			func(context.Context, *kopf.Admission[*corev1.Namespace]) error {
				return kopf.Deny(http.StatusForbidden, "judged")
			})
		p := startProgram(t, api, op)
		time.Sleep(5 * time.Second)
		for _, entry := range p.entries(t, validatingResource) {
			conditions := []string{}
			for _, one := range entry.MatchConditions {
				conditions = append(conditions, one.Name)
			}
			selected := entry.NamespaceSelector != nil && len(entry.NamespaceSelector.MatchExpressions) > 0
			if selected || !slices.Contains(conditions, "in-namespaces") {
				t.Errorf("a match condition selects Namespace objects: got %v, %q", entry.NamespaceSelector, conditions)
			}
		}
		asked := request(map[string]any{
			"name": "other", "namespace": "other",
			"resource": map[string]any{"group": "", "version": "v1", "resource": "namespaces"},
			"object": map[string]any{
				"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "other"},
			},
		})
		if status, verdict := p.post(t, "/test.example.org/validate/v", asked); status != 200 || verdict.Allowed {
			t.Errorf("a request for another Namespace object calls the handler: got %d, %+v", status, verdict)
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestExcludedNamespacesMistake shows that an invalid excluded namespace is an error of the set-up.
func TestExcludedNamespacesMistake(t *testing.T) {
	op := kopf.New("test.example.org", kopf.Settings{
		Admission: kopf.AdmissionSettings{ExcludedNamespaces: []string{"Team_A"}},
	})
	const want = "Admission.ExcludedNamespaces: "
	if _, err := kopf.Plan(op, newScheme(t)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("an invalid excluded namespace is an error: got %v, want %q", err, want)
	}
}

var allNamespaces = memapi.Resource{Version: "v1", Plural: "namespaces", Kind: "Namespace"}
