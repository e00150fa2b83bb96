package kopf_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// permittedVerbs is an API server that answers reviews of permissions: the verbs are permitted for all resources.
type permittedVerbs struct {
	http.RoundTripper

	verbs  []string
	agents chan string // of the reviews
}

func (r permittedVerbs) RoundTrip(request *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(request.URL.Path, "/selfsubjectrulesreviews") {
		request.Header.Del("Impersonate-User") // the server in memory refuses it
		return r.RoundTripper.RoundTrip(request)
	}
	if r.agents != nil {
		r.agents <- request.UserAgent() + " " + request.Header.Get("Impersonate-User")
	}
	text, err := json.Marshal(authorizationv1.SelfSubjectRulesReview{Status: authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{
			{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: r.verbs},
		},
	}})
	return &http.Response{
		StatusCode: http.StatusCreated, Body: io.NopCloser(strings.NewReader(string(text))),
		Header: http.Header{"Content-Type": {"application/json"}},
	}, err
}

// TestPreflightCommand shows the exit codes and the output of the command.
func TestPreflightCommand(t *testing.T) {
	server := memapi.New()
	server.Install(widgetResource)
	all := serve(t, permittedVerbs{RoundTripper: server, verbs: []string{"*"}})
	reading := serve(t, permittedVerbs{
		RoundTripper: server, verbs: []string{"get", "list", "watch", "create", "update"},
	})
	unknown := serve(t, server)
	empty := serve(t, permittedVerbs{RoundTripper: memapi.New(), verbs: []string{"*"}})
	for name, c := range map[string]struct {
		reason, kubeconfig, args string
		code                     int
		want                     []string
	}{
		"all": {"without a problem, the exit code is 0", all, "-A", 0, []string{"ok", " 0 failed"}},
		"missing": {"a missing rule is exit code 1, with the handler and the rule", reading, "-A", 1, []string{
			"failed", "permission", " fn\n", "fix:     add this rule to a ClusterRole of the operator: " +
				`{"verbs":["patch"],"apiGroups":["example.org"],"resources":["widgets"]}`, "checks failed",
		}},
		"json": {"JSON has the same findings", reading, "-A -o json", 1, []string{
			`"status": "failed"`, `"handlers": [` + "\n        \"fn\"", `"operator": "test.example.org"`,
		}},
		"unknown": {"without reviews, permissions are unknown, which is not a failure", unknown, "-A", 0,
			[]string{"unknown", " 0 failed"}},
		"no kind": {"a kind that is not installed is a failure", empty, "-n ns", 1,
			[]string{"the kind is not installed", "kubectl apply -f"}},
		"format": {"an unknown format is a usage error", all, "-o yaml", 2,
			[]string{`"yaml" is neither text nor json`}},
		"scopes": {"both scopes are a usage error", all, "-A -n a", 2, []string{"exclude each other"}},
		"no reply": {"a cluster that does not answer is an error", unreachableKubeconfig, "-A", 1,
			[]string{"connection refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := execute(t, newWidgetOperator(),
				append([]string{"preflight", "--kubeconfig", c.kubeconfig}, strings.Fields(c.args)...)...)
			if code != c.code {
				t.Errorf("%s: exit code %d, want %d", c.reason, code, c.code)
			}
			for _, want := range c.want {
				if !strings.Contains(out+errs, want) {
					t.Errorf("%s: want %q in:\n%s%s", c.reason, want, out, errs)
				}
			}
		})
	}
}

// TestPreflightOfAnotherUser shows that --as checks the permissions of that user, and of the namespace of a service
// account.
func TestPreflightOfAnotherUser(t *testing.T) {
	server, agents := memapi.New(), make(chan string, 10)
	server.Install(widgetResource)
	kubeconfig := serve(t, permittedVerbs{RoundTripper: server, verbs: []string{"*"}, agents: agents})
	const user = "system:serviceaccount:team-a:operator"
	code, out, errs := execute(t, newWidgetOperator(), "preflight", "-A", "--kubeconfig", kubeconfig, "--as", user)
	close(agents)
	if got := <-agents; code != 0 || !strings.HasSuffix(got, " "+user) || strings.Contains(out, "unknown: permission") {
		t.Errorf("exit code %d, review by %q: %s%s", code, got, out, errs)
	}
}

// TestChecksBesideProgram shows that a program logs the problems once it runs, by one review, and with a fix.
func TestChecksBesideProgram(t *testing.T) {
	server, agents := memapi.New(), make(chan string, 10)
	server.Install(widgetResource)
	api := permittedVerbs{RoundTripper: server, verbs: []string{"list", "watch"}, agents: agents}
	t.Setenv("KUBECONFIG", serve(t, api))
	logged := &awaitedLog{want: "problem=", found: make(chan struct{})}
	cmd := newWidgetOperator().Command()
	cmd.SetArgs([]string{"-A", "--debug-bind-address", "0"})
	cmd.SetErr(logged)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	select {
	case <-logged.found:
	case err := <-done:
		t.Fatalf("the program has ended: %v: %s", err, logged.String())
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	const line = "The cluster lacks something that the operator needs; see the command preflight"
	if !strings.Contains(logged.String(), line) ||
		!strings.Contains(logged.String(), "add this rule to a ClusterRole") {
		t.Errorf("the log has the problem and the fix: %s", logged.String())
	}
	if got := <-agents; !strings.HasSuffix(got, "/test.example.org ") || len(agents) > 0 {
		t.Errorf("one review with the user agent of the operator: %s, and %d more", got, len(agents))
	}
}

// awaitedLog closes the channel when the text is written.
type awaitedLog struct {
	lockedBuffer

	want  string
	found chan struct{}
	once  bool
}

func (l *awaitedLog) Write(text []byte) (int, error) {
	n, err := l.lockedBuffer.Write(text)
	if !l.once && strings.Contains(string(text), l.want) {
		l.once = true
		close(l.found)
	}
	return n, err
}
