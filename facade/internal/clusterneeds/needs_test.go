package clusterneeds_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterneeds"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
)

const crd = `{"metadata": {"name": "widgets.example.org"}, "spec": {"group": "example.org", "scope": "Namespaced",
	"names": {"kind": "Widget", "plural": "widgets", "shortNames": ["wi"]}, "versions": [
	{"name": "v1beta1", "served": true}, {"name": "v1", "served": true, "subresources": {"status": {}}},
	{"name": "v2", "served": false}]}}`

// resources returns the kinds of Kubernetes and of the CRD.
func resources(t *testing.T) []discovery.Resource {
	t.Helper()
	own, err := clusterneeds.FromCRD([]byte(crd))
	if err != nil {
		t.Fatal(err)
	}
	return append(clusterneeds.BuiltIn(scheme.Scheme), own...)
}

func selector(t *testing.T, spelling ...string) discovery.Selector {
	t.Helper()
	s, err := discovery.ParseSpelling(spelling...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// lines renders needs for comparisons.
func lines(needs []clusterneeds.Need) (all []string) {
	for _, n := range needs {
		ids := make([]string, 0, len(n.Handlers))
		for _, h := range n.Handlers {
			ids = append(ids, h.ID)
		}
		scope := map[clusterneeds.Scope]string{
			clusterneeds.ServedNamespaces: "served", clusterneeds.WholeCluster: "cluster",
			clusterneeds.OneNamespace: "namespace " + n.Namespace,
		}[n.Scope]
		all = append(all, fmt.Sprintf("%s: %s %v%v%v %s %v", scope, strings.Join(n.Rule.APIGroups, ","),
			n.Rule.Resources, n.Rule.ResourceNames, n.Rule.Verbs, n.Feature, ids))
	}
	return all
}

func TestNeedsOfFeatures(t *testing.T) {
	create := &handlers.Handler{ID: "provision", Family: handlers.Changing, Reason: cause.Create}
	watching := &handlers.Handler{ID: "seen", Family: handlers.Watching}
	index := &handlers.Handler{ID: "by-owner", Family: handlers.Indexing, Index: &handlers.IndexWork{}}
	admitting := &handlers.Handler{ID: "quota", Family: handlers.Admitting}
	owning := &handlers.Handler{ID: "owns", Family: handlers.Parent}
	owning.ParentHandler = owning
	whole := &handlers.Handler{ID: "watches", Family: handlers.Parent, AllowAnyObject: true}
	whole.ParentHandler = whole
	widgets := selector(t, "widgets")
	cases := map[string]struct {
		reason string
		given  clusterneeds.PermissionInput
		want   []string
	}{
		"changes": {"handlers of changes read, patch, and write the status; CRDs and events belong to each operator",
			clusterneeds.PermissionInput{Handlers: []clusterneeds.HandlerNeeds{{widgets, create}}}, []string{
				"served: example.org [widgets][][list watch] handled objects [provision]",
				"served: example.org [widgets][][get patch] annotations, finalizers and patches [provision]",
				"served: example.org [widgets/status][][patch] the status [provision]",
				"cluster: apiextensions.k8s.io [customresourcedefinitions][][list watch] changes of CRDs []",
				"served:  [events][][create patch] Kubernetes events []",
			}},
		"reading": {"event handlers and indices only read, and a built-in kind does not depend on CRDs",
			clusterneeds.PermissionInput{NoEvents: true, Handlers: []clusterneeds.HandlerNeeds{
				{selector(t, "v1", "pods"), watching}, {selector(t, "v1", "nodes"), index}}}, []string{
				"served:  [pods][][list watch] handled objects [seen]",
				"cluster:  [nodes][][list watch] handled objects [by-owner]",
			}},
		"children": {"children of Owns are written, the kind of Watches is only read, and owners get owner references",
			clusterneeds.PermissionInput{NoEvents: true, ScanOnce: true, Handlers: []clusterneeds.HandlerNeeds{
				{selector(t, "apps/v1", "deployments"), owning}, {selector(t, "v1", "secrets"), whole},
				{widgets, &handlers.Handler{ID: "child", Family: handlers.Child, ParentHandler: owning}}}}, []string{
				"served: apps [deployments][][get list watch create patch delete] children of Owns [owns]",
				"served:  [secrets][][list watch] Watches and WaitFor [watches]",
				"served: example.org [widgets][][list watch] handled objects [child]",
				"served: example.org [widgets][][get patch] annotations, finalizers and patches [child]",
				"served: example.org [widgets/status][][patch] the status [child]",
				"served: example.org [widgets/finalizers][][update] owner references of children [child]",
			}},
		"admission": {"an admission handler needs nothing on its kind, and the configurations and the Secret by name",
			clusterneeds.PermissionInput{
				NoEvents: true, ScanOnce: true, Managed: "m", Secret: types.NamespacedName{Namespace: "n", Name: "s"},
				Handlers: []clusterneeds.HandlerNeeds{{widgets, admitting}},
			}, []string{
				"cluster: admissionregistration.k8s.io [validatingwebhookconfigurations " +
					"mutatingwebhookconfigurations][][create] Admission.Managed [quota]",
				"cluster: admissionregistration.k8s.io [validatingwebhookconfigurations " +
					"mutatingwebhookconfigurations][m][get patch watch update] Admission.Managed [quota]",
				"namespace n:  [secrets][][create] Admission.Secret [quota]",
				"namespace n:  [secrets][s][get update] Admission.Secret [quota]",
			}},
		"cluster-scoped events": {"events about cluster-scoped objects are in the operator's namespace",
			clusterneeds.PermissionInput{Handlers: []clusterneeds.HandlerNeeds{{selector(t, "v1", "nodes"), watching}}},
			[]string{
				"cluster:  [nodes][][list watch] handled objects [seen]",
				"served:  [events][][create patch] Kubernetes events []",
				"namespace :  [events][][create patch] Kubernetes events []",
			}},
		"peering": {"the cluster's peering object is named, and its events are in the namespace default",
			clusterneeds.PermissionInput{Peering: "p"}, []string{
				"cluster: kopf.dev,zalando.org [clusterkopfpeerings][p][get list watch patch] peering []",
				"cluster: kopf.dev,zalando.org [clusterkopfpeerings/status][p][patch] peering []",
				"namespace default:  [events][][create] events of peering []",
			}},
		"namespaces": {"with namespaces, the peering is theirs, and patterns need the list of namespaces",
			clusterneeds.PermissionInput{
				Peering: "p", Namespaces: namespaces.Patterns{namespaces.ParsePattern("team-*")},
			}, []string{
				"cluster:  [namespaces][][list watch] patterns of namespaces []",
				"served: kopf.dev,zalando.org [kopfpeerings][p][get list watch patch] peering []",
				"served: kopf.dev,zalando.org [kopfpeerings/status][p][patch] peering []",
			}},
		"sharding": {"replicas that share the objects list, make and remove Leases, without an election",
			clusterneeds.PermissionInput{Shards: 16}, []string{
				"namespace : coordination.k8s.io [leases][][get list create update delete] sharding []",
			}},
		"others": {"a Lease, reviews, cached reads and declared rules, each with the scope of its resources",
			clusterneeds.PermissionInput{
				LeaderElection: true, MetricsSecure: true,
				CachedReads: []schema.GroupVersionKind{{Version: "v1", Kind: "Secret"}},
				Declared: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/log", "nodes"},
					Verbs: []string{"get"}}},
			}, []string{
				"served:  [secrets][][list watch] CachedReads []",
				"namespace : coordination.k8s.io [leases][][get create update] leader election []",
				"cluster: authentication.k8s.io [tokenreviews][][create] metrics with authentication []",
				"cluster: authorization.k8s.io [subjectaccessreviews][][create] metrics with authentication []",
				"served:  [pods/log][][get] declared by Needs []",
				"cluster:  [nodes][][get] declared by Needs []",
			}},
		"paths": {"declared rules for the same paths are one need with all verbs, and other paths are another need",
			clusterneeds.PermissionInput{Declared: []rbacv1.PolicyRule{
				{NonResourceURLs: []string{"/a"}, Verbs: []string{"get"}},
				{NonResourceURLs: []string{"/b"}, Verbs: []string{"get"}},
				{NonResourceURLs: []string{"/a"}, Verbs: []string{"post"}},
			}}, []string{
				"cluster:  [][][get post] declared by Needs []",
				"cluster:  [][][get] declared by Needs []",
			}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			needs, unresolved := clusterneeds.Needs(c.given, resources(t))
			if d := cmp.Diff(c.want, lines(needs)); d != "" || len(unresolved) > 0 {
				t.Errorf("%s: unresolved %v (-want, +got):\n%s", c.reason, unresolved, d)
			}
		})
	}
}

// TestUnresolvedKinds shows that a kind without a resource, or with several, is returned with its handlers, and that
// the other needs are complete.
func TestUnresolvedKinds(t *testing.T) {
	h := &handlers.Handler{ID: "provision", Family: handlers.Changing, Reason: cause.Create}
	twice, err := clusterneeds.FromCRD([]byte(strings.ReplaceAll(crd, "example.org", "example.com")))
	if err != nil {
		t.Fatal(err)
	}
	o := clusterneeds.PermissionInput{NoEvents: true, ScanOnce: true, Handlers: []clusterneeds.HandlerNeeds{
		{selector(t, "databases"), h}, {selector(t, "wi"), h}, {selector(t, "v1", "pods"), h},
	}, Declared: []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployment"}}}}
	needs, unresolved := clusterneeds.Needs(o, append(resources(t), twice...))
	if len(unresolved) != 3 || len(unresolved[0].Ambiguous) != 0 || unresolved[0].Handlers[0] != h ||
		len(unresolved[1].Ambiguous) != 2 || unresolved[2].Rule.Resources[0] != "deployment" {
		t.Errorf("unresolved %+v: want databases, wi as ambiguous, and the declared rule", unresolved)
	}
	if got := lines(needs); len(got) != 4 || !strings.Contains(got[0], "pods") {
		t.Errorf("the needs of pods and the declared rule are complete: %q", got)
	}
}

func TestCRDsOfFiles(t *testing.T) {
	found, err := clusterneeds.FromCRD([]byte(crd))
	if err != nil || len(found) != 2 || found[0].Preferred || !found[1].Preferred || found[0].HasStatus() ||
		!found[1].HasStatus() || found[1].Singular != "widget" || !found[1].Namespaced {
		t.Errorf("served versions with v1 as the preferred one: %+v, error %v", found, err)
	}
	for bad, want := range map[string]string{
		`[]`: "reading CRD", `{"metadata": {"name": "x"}, "spec": {"scope": "Cluster"}}`: `CRD "x": spec.group`,
		strings.Replace(crd, "Namespaced", "namespaced", 1): `CRD "widgets.example.org": spec.scope is "namespaced"`,
	} {
		if _, err := clusterneeds.FromCRD([]byte(bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want an error with %q, got %v", bad, want, err)
		}
	}
}

// TestBuiltIn compares the resources with the clients of client-go, which are generated from the API: plurals, scopes
// and subresources for the status.
func TestBuiltIn(t *testing.T) {
	found := map[schema.GroupVersionKind]discovery.Resource{}
	for _, one := range clusterneeds.BuiltIn(scheme.Scheme) {
		found[one.GroupVersionKind] = one
	}
	checked := 0
	clients := reflect.TypeFor[kubernetes.Interface]()
	for i := range clients.NumMethod() {
		version := clients.Method(i).Type.Out(0)
		for j := 0; version.Kind() == reflect.Interface && j < version.NumMethod(); j++ {
			m := version.Method(j)
			create, ok := m.Type.Out(0).MethodByName("Create")
			if !ok || m.Type.Out(0).Kind() != reflect.Interface || create.Type.NumIn() < 2 {
				continue // RESTClient, and objects that are not created by themselves
			}
			kinds := scheme.Scheme.AllKnownTypes()
			for kind, typ := range kinds {
				if reflect.PointerTo(typ) != create.Type.In(1) || strings.HasPrefix(kind.Group, "extensions") ||
					kind.Version == "__internal" {
					continue
				}
				got, ok := found[kind]
				_, hasStatus := m.Type.Out(0).MethodByName("UpdateStatus")
				want := discovery.Resource{Plural: strings.ToLower(m.Name), Namespaced: m.Type.NumIn() > 0}
				isReview := strings.HasSuffix(kind.Kind, "Review")
				checked++
				if !ok || got.Plural != want.Plural || got.Namespaced != want.Namespaced ||
					!isReview && got.HasStatus() != hasStatus {
					t.Errorf("%s: got %+v, want plural %s, namespaced %v, status %v", kind, got, want.Plural,
						want.Namespaced, hasStatus)
				}
			}
		}
	}
	if checked < 50 {
		t.Errorf("compared %d kinds only", checked)
	}
	pods := discovery.Selector{Name: "events"}.SelectFrom(clusterneeds.BuiltIn(scheme.Scheme))
	if !slices.ContainsFunc(pods, func(r discovery.Resource) bool { return r.Group == "" && r.Preferred }) {
		t.Errorf("the core group is found by a name without a version: %v", pods)
	}
}
