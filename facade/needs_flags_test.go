package kopf_test

import (
	"context"
	"strings"
	"testing"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestNeedsFollowFlags shows that the generated permissions and arguments follow the flags with which the operator will
// run.
func TestNeedsFollowFlags(t *testing.T) {
	withoutCluster(t)
	for name, tc := range map[string]struct {
		reason        string
		settings      kopf.Settings
		args          []string
		lease, review bool
		lists         bool // of Leases
		arguments     string
	}{
		"default": {reason: "by default, a Lease decides in a pod", lease: true},
		"never": {reason: "without an election, there is no Lease", args: []string{"--leader-elect=false"},
			arguments: "--leader-elect=false"},
		"always": {reason: "standalone replicas that must elect have a Lease",
			settings: kopf.Settings{Peering: kopf.PeeringSettings{Standalone: true}},
			args:     []string{"--leader-elect", "--leader-elect-id=mine"}, lease: true,
			arguments: "--leader-elect=true --leader-elect-id=mine"},
		"standalone": {reason: "a standalone operator has no Lease by itself",
			settings: kopf.Settings{Peering: kopf.PeeringSettings{Standalone: true}}},
		"mandatory": {reason: "a mandatory peering decides, not a Lease", args: []string{"--peering=p"},
			arguments: "--peering=p"},
		"secure": {reason: "metrics with authentication need reviews", args: []string{"--metrics-secure"}, lease: true,
			review: true, arguments: "--metrics-secure"},
		"sharded": {reason: "replicas that share the objects list Leases", args: []string{"--shards=8"}, lease: true,
			lists: true, arguments: "--shards=8"},
		"sharded by settings": {reason: "the program has the number itself", lease: true, lists: true,
			settings: kopf.Settings{Sharding: kopf.ShardingSettings{Shards: 8}}},
	} {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org", tc.settings)
			create := func(context.Context, *kopf.Change[*kopf.Unstructured]) error { return nil }
			kopf.ForResource(op, "v1", "pods").OnCreate("fn", create)
			code, out, errs := execute(t, op, append([]string{"manifests", "-A"}, tc.args...)...)
			if code != 0 {
				t.Fatal(errs)
			}
			if got := strings.Contains(out, "[leases]"); got != tc.lease {
				t.Errorf("%s: a rule for leases is there: %v", tc.reason, got)
			}
			if got := strings.Contains(out, "verbs: [get, list, create, update, delete]"); got != tc.lists {
				t.Errorf("%s: the rule for leases lists and deletes: %v", tc.reason, got)
			}
			if got := strings.Contains(out, "[tokenreviews]"); got != tc.review {
				t.Errorf("%s: a rule for token reviews is there: %v", tc.reason, got)
			}
			for argument := range strings.FieldsSeq(tc.arguments) {
				if !strings.Contains(strings.ReplaceAll(out, `"`, ""), "- "+argument+"\n") {
					t.Errorf("%s: the Deployment has the argument %s:\n%s", tc.reason, argument, out)
				}
			}
		})
	}
}
