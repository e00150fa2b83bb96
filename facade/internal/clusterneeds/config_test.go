package clusterneeds_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterneeds"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
)

const configDir = "../../../config"

// addGrants adds each resource and verb of a rule. Peering objects are named after operators, which config leaves open.
func addGrants(to map[string]bool, rule rbacv1.PolicyRule) {
	names := strings.Join(rule.ResourceNames, ",")
	for _, verb := range rule.Verbs {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				grant := strings.TrimSpace(verb + " " + resource + "." + group + " " + names)
				if strings.Contains(resource, "kopfpeerings") {
					grant = verb + " " + resource + "." + group
				}
				to[grant] = true
			}
		}
	}
}

// configGrants returns what the roles of the files allow.
func configGrants(t *testing.T, pattern string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(configDir, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no files %s: %v", pattern, err)
	}
	all := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var role rbacv1.ClusterRole
			if err := yaml.Unmarshal([]byte(document), &role); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, rule := range role.Rules {
				addGrants(all, rule)
			}
		}
	}
	return all
}

// TestConfigFollowsNeeds shows that the roles in the folder config allow what an operator with all features needs, as
// the command manifests prints it, and nothing else.
func TestConfigFollowsNeeds(t *testing.T) {
	crd, err := os.ReadFile(filepath.Join(configDir, "crd/kopfexamples.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.YAMLToJSON(crd)
	if err != nil {
		t.Fatal(err)
	}
	served, err := clusterneeds.FromCRD(text)
	if err != nil {
		t.Fatal(err)
	}
	examples := selector(t, "kopfexamples")
	given := clusterneeds.PermissionInput{
		Handlers: []clusterneeds.HandlerNeeds{
			{examples, &handlers.Handler{ID: "create", Family: handlers.Changing, Reason: cause.Create}},
			{examples, &handlers.Handler{ID: "check", Family: handlers.Admitting}},
		},
		Peering: "any", LeaderElection: true, MetricsSecure: true, Managed: "kopf-runtime.example.org",
		Secret: types.NamespacedName{Namespace: "system", Name: "kopf-runtime-webhook-certificate"},
	}
	needed := map[string]bool{}
	for shards, patterns := range []namespaces.Patterns{nil, {namespaces.ParsePattern("team-*")}} {
		given.Namespaces, given.Shards = patterns, shards
		all, unresolved := clusterneeds.Needs(given, served)
		if len(unresolved) > 0 {
			t.Fatalf("a kind is not in config/crd: %v", unresolved)
		}
		for _, one := range all {
			addGrants(needed, one.Rule)
		}
	}
	// Two comments in the roles explain more: the events of a manager's own leader election, and the status of kinds
	// that have it as a subresource, unlike kopfexamples.
	for _, more := range []string{
		"create events.events.k8s.io", "patch events.events.k8s.io", "patch kopfexamples/status.kopf.dev",
	} {
		needed[more] = true
	}
	allowed := configGrants(t, "rbac/*_role.yaml")
	maps.Copy(allowed, configGrants(t, "rbac/role.yaml"))
	maps.Copy(allowed, configGrants(t, "webhook/role.yaml"))
	maps.Copy(allowed, configGrants(t, "sharding/role.yaml"))
	if d := cmp.Diff(slices.Sorted(maps.Keys(needed)), slices.Sorted(maps.Keys(allowed))); d != "" {
		t.Errorf("the roles in config allow something else than the command prints (-printed, +config):\n%s", d)
	}
}
