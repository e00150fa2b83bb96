package manifests_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterneeds"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/manifests"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
)

// event returns a line of an audit log, of a request by the operator "x.example.org".
func event(verb, group, resource, subresource, namespace, name string) string {
	return `{"kind":"Event","apiVersion":"audit.k8s.io/v1","verb":"` + verb + `","userAgent":"op/v0 (linux/amd64) ` +
		`kubernetes/$Format/x.example.org","objectRef":{"apiGroup":"` + group + `","resource":"` + resource +
		`","subresource":"` + subresource + `","namespace":"` + namespace + `","name":"` + name + `"}}` + "\n"
}

// propose returns the lines for a recording.
func propose(t *testing.T, content string, o manifests.ManifestInput) (lines []string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "requests.jsonl")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Name = "x.example.org"
	lines, err = manifests.ProposeRules(file, o)
	for i := range lines {
		lines[i] = strings.ReplaceAll(strings.TrimSpace(lines[i]), file, "FILE")
	}
	return lines, err
}

func TestProposedRules(t *testing.T) {
	served := clusterneeds.Need{Rule: rule("example.org", "widgets", "get", "list")}
	named := clusterneeds.Need{Rule: rule("", "secrets", "get"), Scope: clusterneeds.OneNamespace}
	named.Rule.ResourceNames = []string{"own"}
	logs := clusterneeds.Need{Rule: rbacv1.PolicyRule{
		APIGroups: []string{"*"}, Resources: []string{"*/log"}, Verbs: []string{"*"},
	}}
	foreign := strings.ReplaceAll(event("get", "", "secrets", "", "a", "other"), "/x.example.org", "")
	for name, c := range map[string]struct {
		reason    string
		recording string
		want      []string
	}{
		"covered": {"requests that a need covers are not proposed, also by a name or a wildcard",
			event("get", "example.org", "widgets", "", "a", "w") + "\n" + event("get", "", "secrets", "", "o", "own") +
				event("get", "", "pods", "log", "a", "p"), nil},
		"of everybody": {"requests that Kubernetes grants to everybody, and those without an object, need no rule",
			event("create", "authorization.k8s.io", "selfsubjectrulesreviews", "", "", "") +
				`{"kind":"Event","apiVersion":"audit.k8s.io/v1","verb":"get","userAgent":"x.example.org"}`, nil},
		"of others": {"requests of other clients are ignored",
			foreign + event("get", "example.org", "widgets", "", "a", ""), nil},
		"verbs": {"the verbs of one resource are one rule, in the usual order, each once",
			event("patch", "", "secrets", "", "a", "s") + event("get", "", "secrets", "", "a", "s") +
				event("get", "", "secrets", "", "b", "t"), []string{
				`rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ` +
					`Verbs: []string{"get", "patch"}},`,
			}},
		"subresources": {"a subresource is a resource of its own, and a missing verb alone is proposed",
			event("patch", "example.org", "widgets", "status", "a", "w") +
				event("delete", "example.org", "widgets", "", "a", "w"), []string{
				`rbacv1.PolicyRule{APIGroups: []string{"example.org"}, Resources: []string{"widgets/status"}, ` +
					`Verbs: []string{"patch"}},`,
				`rbacv1.PolicyRule{APIGroups: []string{"example.org"}, Resources: []string{"widgets"}, ` +
					`Verbs: []string{"delete"}},`,
			}},
		"namespaces": {"a request in a namespace that is not served needs more than a declaration",
			event("get", "example.org", "widgets", "", "other", "w"), []string{
				`rbacv1.PolicyRule{APIGroups: []string{"example.org"}, Resources: []string{"widgets"}, ` +
					`Verbs: []string{"get"}},`,
				"// The operator does not serve these namespaces: make a Role in each: other",
			}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := propose(t, c.recording, manifests.ManifestInput{
				Needs: []clusterneeds.Need{served, named, logs},
				Namespaces: namespaces.Patterns{
					namespaces.ParsePattern("a"), namespaces.ParsePattern("b"),
				},
			})
			want := []string{"FILE: the permissions cover all recorded requests."}
			if c.want != nil {
				want = append([]string{"FILE has requests that the permissions do not cover. Add those that are " +
					"meant to the program:", "", "op.Needs("}, c.want...)
				want = append(want, ")", "")
			}
			if d := cmp.Diff(want, got); d != "" || err != nil {
				t.Errorf("%s: error %v (-want, +got):\n%s", c.reason, err, d)
			}
		})
	}
}

// TestHintsOfPeering shows that the hint to apply the CRDs first is given only for one set of all objects that also has
// an object of these kinds.
func TestHintsOfPeering(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		peering string
		format  string
		only    []string
		want    bool
	}{
		"peering":   {"kubectl rejects the peering object before its CRD", "p", manifests.Plain, nil, true},
		"helm":      {"Helm applies the CRDs first", "p", manifests.Helm, nil, false},
		"selected":  {"a user who selects parts knows about the CRDs", "p", manifests.Plain, []string{"rbac"}, false},
		"no object": {"without a peering object, no object needs its CRD", "", manifests.Plain, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, hints, err := manifests.Generate(manifests.ManifestInput{Name: "x.example.org", Peering: c.peering},
				manifests.Options{Format: c.format, Replicas: 1, Only: c.only}, nil)
			if strings.Contains(strings.Join(hints, " "), "the CRDs first") != c.want || err != nil {
				t.Errorf("%s: hints %q, error %v", c.reason, hints, err)
			}
		})
	}
}

// TestInvalidRecordings shows that a wrong file is an error with the number of the line.
func TestInvalidRecordings(t *testing.T) {
	good := event("get", "", "pods", "", "a", "p")
	for name, c := range map[string]struct{ reason, recording, want string }{
		"text": {"a line that is not JSON is an error", good + "\nINFO starting\n",
			"requests.jsonl:3: it is not an audit"},
		"cut off": {"a line without its end is an error", good + good[:40], "requests.jsonl:2: it is not an audit"},
		"kind": {"another object is an error", `{"kind":"Pod","apiVersion":"v1"}`,
			"requests.jsonl:1: it is not an audit event with a verb"},
		"other kind": {"an object of the group of audit events that is not an event is an error",
			`{"kind":"Policy","apiVersion":"audit.k8s.io/v1","verb":"get"}`,
			`requests.jsonl:1: it is not an audit event with a verb, but "Policy"`},
		"other group": {"an event that is not of the audit log is an error",
			`{"kind":"Event","apiVersion":"v1","verb":"get"}`,
			"requests.jsonl:1: it is not an audit event with a verb"},
		"verb": {"an event without a verb is an error", `{"kind":"Event","apiVersion":"audit.k8s.io/v1"}`,
			"requests.jsonl:1: "},
		"type":    {"a field of another type is an error", `{"kind":7}`, "requests.jsonl:1: "},
		"nothing": {"an empty file is an error", "", "none of the 0 requests"},
		"others": {"a recording of other clients is an error", strings.ReplaceAll(good, "x.example", "y.example"),
			`none of the 1 requests has a user agent with the name of the operator, "x.example.org"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := propose(t, c.recording, manifests.ManifestInput{}); err == nil ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: want an error with %q, got %v", c.reason, c.want, err)
			}
		})
	}
	if _, err := manifests.ProposeRules(filepath.Join(t.TempDir(), "missing"), manifests.ManifestInput{}); err == nil {
		t.Error("a missing file is an error")
	}
}
