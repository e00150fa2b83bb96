package clusterneeds_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterneeds"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
)

// cluster is an API server in memory that also answers reviews of permissions.
type cluster struct {
	server *memapi.Server
	rules  map[string][]authorizationv1.ResourceRule // by namespace; "*" is each namespace
	// incomplete and allowed are for authorizers that do not list their rules. Requests in allowed are
	// "namespace verb resource/subresource.group".
	incomplete bool
	allowed    []string
	refused    string // a part of the paths that are forbidden
	ahead      time.Duration
	requests   []string
}

// RoundTrip implements [http.RoundTripper].
func (c *cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests = append(c.requests, r.Method+" "+r.URL.Path)
	code := http.StatusCreated
	var review any
	switch {
	case c.refused != "" && strings.Contains(r.URL.Path, c.refused):
		code, review = http.StatusForbidden, map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
			"message": "no",
		}
	case strings.HasSuffix(r.URL.Path, "/selfsubjectrulesreviews"):
		var asked authorizationv1.SelfSubjectRulesReview
		if err := decode(r, &asked); err != nil || asked.Kind == "" || asked.Spec.Namespace == "" {
			return nil, fmt.Errorf("bad review %+v: %w", asked, err)
		}
		asked.Status.Incomplete = c.incomplete
		asked.Status.ResourceRules = slices.Concat(c.rules["*"], c.rules[asked.Spec.Namespace])
		review = asked
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		var asked authorizationv1.SelfSubjectAccessReview
		if err := decode(r, &asked); err != nil || asked.Spec.ResourceAttributes == nil {
			return nil, fmt.Errorf("bad review %+v: %w", asked, err)
		}
		a := asked.Spec.ResourceAttributes
		text := fmt.Sprintf("%s %s %s/%s.%s", a.Namespace, a.Verb, a.Resource, a.Subresource, a.Group)
		asked.Status.Allowed = slices.Contains(c.allowed, text)
		review = asked
	default:
		answer, err := c.server.RoundTrip(r)
		if err == nil && c.ahead != 0 {
			answer.Header.Set("Date", time.Now().Add(-c.ahead).UTC().Format(http.TimeFormat))
		}
		return answer, err
	}
	text, err := json.Marshal(review)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(bytes.NewReader(text)),
	}, err
}

func decode(r *http.Request, into any) error {
	data, err := io.ReadAll(r.Body)
	return errors.Join(err, json.Unmarshal(data, into))
}

// widgets is a kind with a status subresource; the version v2 is not served.
const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, properties: {provision: {type: object, properties: {url: {type: string}}}}}
  - name: v2
    served: false
    storage: false
    schema: {openAPIV3Schema: {type: object}}
`

// newCluster returns a cluster with the definition, in which everything is permitted.
func newCluster(t *testing.T, definition string) *cluster {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(definition), crd); err != nil {
		t.Fatal(err)
	}
	c := &cluster{server: memapi.New()}
	if err := c.server.Define(crd); err != nil {
		t.Fatal(err)
	}
	c.grant("*", "* * *")
	return c
}

// grant replaces the rules of a namespace: groups, resources and verbs, separated by spaces and commas.
func (c *cluster) grant(namespace string, rules ...string) {
	if c.rules == nil {
		c.rules = map[string][]authorizationv1.ResourceRule{}
	}
	c.rules[namespace] = nil
	for _, text := range rules {
		parts := strings.Fields(text)
		c.rules[namespace] = append(c.rules[namespace], authorizationv1.ResourceRule{
			APIGroups: strings.Split(parts[0], ","), Resources: strings.Split(parts[1], ","),
			Verbs: strings.Split(parts[2], ","),
		})
	}
}

func handlerOf(id string) *handlers.Handler {
	return &handlers.Handler{
		ID: id, Family: handlers.Changing, Reason: cause.Create,
		Call: func(context.Context, *handlers.Invocation) error { return nil },
	}
}

// operatorOf returns an operator with the handler provision for the resource, without events and scans of CRDs.
func operatorOf(t *testing.T, spelling ...string) clusterneeds.CheckInput {
	t.Helper()
	selector, err := discovery.ParseSpelling(spelling...)
	if err != nil {
		t.Fatal(err)
	}
	return clusterneeds.CheckInput{Name: "test.example.org", ClockSkew: 2 * time.Minute,
		PermissionInput: clusterneeds.PermissionInput{
			NoEvents: true, ScanOnce: true,
			Handlers: []clusterneeds.HandlerNeeds{{Selector: selector, Handler: handlerOf("provision")}},
		}}
}

// problems returns the findings that are not ok, as lines.
func problems(t *testing.T, c *cluster, o clusterneeds.CheckInput) (lines []string) {
	t.Helper()
	server, err := clusterneeds.Connect(memapi.Config(c.server), &http.Client{Transport: c})
	if err != nil {
		t.Fatal(err)
	}
	report, err := clusterneeds.Run(t.Context(), o, server)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range report.Findings {
		// The server in memory has no clock.
		if one.Status != clusterneeds.OK && (one.Check != "clock" || one.Status != clusterneeds.Unknown) {
			lines = append(lines, fmt.Sprintf("%s: %s %s %v: %s: %s", one.Status, one.Check, one.Subject, one.Handlers,
				one.Problem, one.Fix))
		}
	}
	return lines
}

const (
	readWidgets  = "example.org widgets get,list,watch,patch"
	statusRule   = `{"verbs":["patch"],"apiGroups":["example.org"],"resources":["widgets/status"]}`
	lacksStatus  = "failed: permission patch widgets.example.org/status [provision]: the status stays as it is: "
	inTheCluster = "add this rule to a ClusterRole of the operator: "
)

func TestPermissions(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(c *cluster, o *clusterneeds.CheckInput)
		want   []string
	}{
		"all": {"nothing is reported if everything is permitted", func(*cluster, *clusterneeds.CheckInput) {}, nil},
		"one rule less": {"the handler, the missing rule and the effect are reported",
			func(c *cluster, _ *clusterneeds.CheckInput) { c.grant("*", readWidgets) },
			[]string{lacksStatus + inTheCluster + statusRule}},
		"namespaces": {"a rule that is missing in one namespace names it",
			func(c *cluster, o *clusterneeds.CheckInput) {
				o.Namespaces = patterns("a", "b")
				c.grant("*", readWidgets)
				c.grant("a", "example.org widgets/status patch")
			}, []string{lacksStatus + "add this rule to a Role of the operator in b: " + statusRule}},
		"roles": {"rules in each namespace suffice for these namespaces",
			func(c *cluster, o *clusterneeds.CheckInput) {
				o.Namespaces = patterns("a", "b")
				c.grant("*")
				c.grant("a", "* * *")
				c.grant("b", "* * *")
			}, nil},
		"role for the cluster": {"rules in a namespace do not suffice for the whole cluster",
			func(c *cluster, _ *clusterneeds.CheckInput) {
				c.grant("*", readWidgets)
				c.grant("default", "* * *")
			}, []string{lacksStatus + inTheCluster + statusRule}},
		"patterns": {"with patterns, the rules of the namespaces that match count",
			func(c *cluster, o *clusterneeds.CheckInput) {
				for _, name := range []string{"team-a", "team-b", "other"} {
					c.server.Put(memapi.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"},
						map[string]any{"metadata": map[string]any{"name": name}})
				}
				o.Namespaces = patterns("team-*")
				c.grant("*", readWidgets)
				c.grant("team-a", "* * *")
			}, []string{lacksStatus + "add this rule to a Role of the operator in team-b: " + statusRule}},
		"incomplete": {"authorizers that do not list their rules are asked for each missing request",
			func(c *cluster, _ *clusterneeds.CheckInput) {
				c.grant("*", "example.org widgets get,list")
				c.incomplete, c.allowed = true, []string{" watch widgets/.example.org", " patch widgets/.example.org"}
			}, []string{lacksStatus + inTheCluster + statusRule}},
		"optional": {"a rule that the operator works without is a warning",
			func(c *cluster, o *clusterneeds.CheckInput) { o.NoEvents = false; c.grant("*", "example.org * *") },
			[]string{"warning: permission create,patch events []: events are logged only: " + inTheCluster +
				`{"verbs":["create","patch"],"apiGroups":[""],"resources":["events"]}`}},
		"own namespace": {"without a known namespace of the pods, rules for it are unknown",
			func(_ *cluster, o *clusterneeds.CheckInput) { o.LeaderElection = true },
			[]string{
				"unknown: permission get,create,update leases.coordination.k8s.io []: the namespace of the " +
					"operator's " +
					"pods is not known: run this command in the pod, or with --as system:serviceaccount:NAMESPACE:NAME",
			}},
		"declared": {"declared rules are checked like those of handlers", func(c *cluster, o *clusterneeds.CheckInput) {
			o.Declared = []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"},
				ResourceNames: []string{"one"},
			}}
			c.grant("*", "example.org * *")
		}, []string{"failed: permission get secrets one []: requests of handlers fail: " + inTheCluster +
			`{"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["one"]}`}},
		"optional peering": {"a kind of peering that is not installed is not needed",
			func(_ *cluster, o *clusterneeds.CheckInput) { o.Peering, o.PeeringOptional = "default", true }, nil},
		"required peering": {"a kind of peering that is required and not installed is reported",
			func(_ *cluster, o *clusterneeds.CheckInput) { o.Peering = "default" },
			[]string{"failed: kind kopf.dev or zalando.org peering []: the peering is required, and the cluster " +
				"has no " +
				"kind for it: the operator waits: apply the CRDs of peering: " +
				"kubectl apply -f config/crd/peerings.yaml"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, o := newCluster(t, widgets), operatorOf(t, "example.org/v1", "widgets")
			tc.change(c, &o)
			if d := cmp.Diff(tc.want, problems(t, c, o)); d != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, d)
			}
		})
	}
}

func patterns(texts ...string) (all namespaces.Patterns) {
	for _, text := range texts {
		all = append(all, namespaces.ParsePattern(text))
	}
	return all
}

// TestRequests shows the requests of the checks: one review for the whole cluster, and one for each namespace that
// needs its own.
func TestRequests(t *testing.T) {
	const reviews = "POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
	documents := []string{"GET /apis", "GET /apis/example.org/v1"}
	c, o := newCluster(t, widgets), operatorOf(t, "example.org/v1", "widgets")
	problems(t, c, o)
	want := slices.Concat(documents, []string{reviews, "GET /openapi/v3/apis/example.org/v1"})
	if d := cmp.Diff(want, c.requests); d != "" {
		t.Errorf("in the whole cluster (-want, +got):\n%s", d)
	}
	c.requests, o.Namespaces = nil, patterns("a", "b")
	c.grant("*")
	problems(t, c, o)
	want = slices.Concat(documents, []string{reviews, reviews, reviews, "GET /openapi/v3/apis/example.org/v1"})
	if d := cmp.Diff(want, c.requests); d != "" {
		t.Errorf("in two namespaces (-want, +got):\n%s", d)
	}
	c.requests, o.Namespaces = nil, nil
	for i := range 300 {
		o.Namespaces = append(o.Namespaces, namespaces.ParsePattern(fmt.Sprintf("n%d", i)))
		c.grant(fmt.Sprintf("n%d", i), "* * *")
	}
	const skipped = "unknown: permission in 280 more namespaces []: the permissions are checked in 20 of the served " +
		"namespaces: check others by -n, or grant the rules in the whole cluster"
	if d := cmp.Diff([]string{skipped}, problems(t, c, o)); d != "" {
		t.Errorf("in many namespaces (-want, +got):\n%s", d)
	}
	if n := len(c.requests); n != 24 {
		t.Errorf("in many namespaces, 20 of them are reviewed: %d requests, want 24", n)
	}
}

// TestUnreadable shows that everything that may not be read is unknown, and never a failure.
func TestUnreadable(t *testing.T) {
	for _, path := range []string{"selfsubjectrulesreviews", "/openapi/", "/apis/example.org", "/apis", "/"} {
		c := newCluster(t, widgets)
		c.refused = path
		lines := problems(t, c, operatorOf(t, "example.org/v1", "widgets"))
		if len(lines) == 0 || slices.ContainsFunc(lines, func(line string) bool {
			return !strings.HasPrefix(line, "unknown: ")
		}) {
			t.Errorf("%s is forbidden: want unknown results only, got %q", path, lines)
		}
	}
}

func TestDifferentClock(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		ahead  time.Duration
		peers  bool
		want   string
	}{
		"small":  {"some seconds are usual", 3 * time.Second, true, ""},
		"ahead":  {"a clock that is ahead is a warning", time.Minute, true, "warning: clock"},
		"behind": {"a clock that is behind is a warning", -time.Minute, true, "warning: clock"},
		"alone":  {"without peers, no difference is a failure", time.Hour, false, "warning: clock"},
		"peers":  {"with peers, a difference beyond the setting is a failure", -time.Hour, true, "failed: clock"},
	} {
		t.Run(name, func(t *testing.T) {
			c, o := newCluster(t, widgets), operatorOf(t, "example.org/v1", "widgets")
			c.ahead = tc.ahead
			if tc.peers {
				c.server.Install(memapi.Resource{
					Group: "kopf.dev", Version: "v1", Kind: "ClusterKopfPeering", Plural: "clusterkopfpeerings",
				})
				o.Peering = "default"
			}
			got := strings.Join(problems(t, c, o), "\n")
			if tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) {
				t.Errorf("%s: want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestNoServer shows that a server without an answer is an error, and not a report.
func TestNoServer(t *testing.T) {
	server, err := clusterneeds.Connect(memapi.Config(memapi.New()), &http.Client{Transport: refusing{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clusterneeds.Run(t.Context(), operatorOf(t, "example.org/v1", "widgets"), server); err == nil {
		t.Error("want an error")
	}
}

type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("refused") }
