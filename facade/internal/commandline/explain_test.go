package commandline_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/inspection"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// fixedStanding is an operator with a fixed standing.
type fixedStanding journal.OperatorState

func (s fixedStanding) OperatorState() journal.OperatorState { return journal.OperatorState(s) }

// startExplainServer starts an operator that explains widget ns/w1. It stores the query of the last request in asked.
func startExplainServer(t *testing.T, name string, asked *url.Values) (address string) {
	t.Helper()
	j := journal.New(journal.RetentionLimits{})
	widget := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}
	kind := j.ForKind(widget.GroupKind(), nil)
	served := kind.ServedKind(discovery.Resource{GroupVersionKind: widget, Plural: "widgets", Namespaced: true}, nil)
	served.Namespaces = []string{""}
	j.SetLive(fixedStanding{Operator: name, Running: true, Kinds: []journal.ServedKind{served}})
	kind.ForObject(types.NamespacedName{Namespace: "ns", Name: "w1"}, "u1").RecordEvent("ADDED", "7")
	return startHTTPServer(t, func(w http.ResponseWriter, r *http.Request) {
		*asked = r.URL.Query()
		inspection.NewHandler(j, inspection.ExtraHandlers{}).ServeHTTP(w, r)
	})
}

func startHTTPServer(t *testing.T, handler http.HandlerFunc) (address string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// explain runs the command and returns its exit code, its output, and its error output.
func explain(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	cmd := commandline.New(commandline.Program{Process: (&fakeOperator{}).asProcess()})
	var stdout, stderr strings.Builder
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(append([]string{"explain"}, args...))
	code = commandline.ExitCode(cmd.ExecuteContext(t.Context()))
	return code, stdout.String(), stderr.String()
}

// TestExplainFlags shows that errors of the command line are reported before a request is sent: the server never
// answers.
func TestExplainFlags(t *testing.T) {
	type environment map[string]string
	nobody := startHTTPServer(t, nil)
	cases := map[string]struct {
		reason      string
		environment environment
		args        string
		want        []string
	}{
		"nothing": {"a missing kind and name are an error that names both", nil, "",
			[]string{`0 arguments are given: it needs a kind and a name, such as "widget default/my-widget"`}},
		"no name": {"a missing name is an error that names the required arguments",
			nil, "widget", []string{"1 arguments are given: it needs"}},
		"two names": {"two names are an error that names the required arguments",
			nil, "widget a b", []string{"3 arguments are given: it needs"}},
		"no name in it": {"an empty name after the namespace is an error", nil, "widget ns/",
			[]string{`"ns/" is neither NAME nor`}},
		"no namespace in it": {"an empty namespace before the name is an error",
			nil, "widget /w1", []string{`"/w1" is neither NAME nor`}},
		"a slip": {"an unknown flag is an error",
			nil, "widget ns/w1 --addr x", []string{"unknown flag: --addr"}},
		"format": {"a wrong output format is an error that lists the valid ones", nil, "widget ns/w1 -o yaml",
			[]string{`"yaml" is neither text nor json`}},
		"no format": {"an empty output format is an error",
			nil, "widget ns/w1 --output=", []string{`"" is neither text nor json`}},
		"namespaces": {"two different namespaces are an error",
			nil, "widget ns/w1 -n other", []string{"two namespaces: other and ns"}},
		"no address": {"a URL as the address is an error",
			nil, "widget ns/w1 --address http://localhost:1", []string{"--address: "}},
		"format of the environment": {"the error of a wrong format names its variable",
			environment{"KOPF_EXPLAIN_OUTPUT": "yaml"}, "widget ns/w1",
			[]string{`"yaml" is neither text nor json`, "Of the environment come --output (KOPF_EXPLAIN_OUTPUT)"}},
		"namespace of the environment": {"the error of a conflicting namespace names its variable",
			environment{"KOPF_EXPLAIN_NAMESPACES": "other"}, "widget ns/w1",
			[]string{"two namespaces: other and ns", "come --namespace (KOPF_EXPLAIN_NAMESPACES)"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for variable, value := range c.environment {
				t.Setenv(variable, value)
			}
			code, out, errs := explain(t, append([]string{"--address", nobody}, strings.Fields(c.args)...)...)
			if code != 2 || out != "" {
				t.Errorf("%s: want exit code 2 and no output, got %d and %q", c.reason, code, out)
			}
			for _, want := range append(c.want, "explain --help' for usage") {
				if !strings.Contains(errs, want) {
					t.Errorf("%s: want %q in: %s", c.reason, want, errs)
				}
			}
		})
	}
}

// TestExplainAsks shows that the request names the right object, wherever the namespace and the address are given.
func TestExplainAsks(t *testing.T) {
	var asked url.Values
	address := startExplainServer(t, "test.example.org", &asked)
	type environment map[string]string
	cases := map[string]struct {
		reason      string
		environment environment
		args        []string
		namespace   string
		name        string
	}{
		"before the name": {"the namespace can precede the name",
			nil, []string{"--address", address, "widget", "ns/w1"}, "ns", "w1"},
		"flag": {"the namespace can be a flag, as in kubectl", nil,
			[]string{"--address", address, "widget", "w1", "-n", "ns"}, "ns", "w1"},
		"both": {"the same namespace can be given twice", nil,
			[]string{"--address", address, "widget", "ns/w1", "--namespace=ns"}, "ns", "w1"},
		"environment": {"each flag can be a variable",
			environment{
				"KOPF_EXPLAIN_ADDRESS": address, "KOPF_EXPLAIN_NAMESPACES": "ns", "KOPF_EXPLAIN_OUTPUT": "text",
			},
			[]string{"widget", "w1"}, "ns", "w1"},
		"flags win": {"flags override variables",
			environment{
				"KOPF_EXPLAIN_ADDRESS": "localhost:1", "KOPF_EXPLAIN_OUTPUT": "yaml", "KOPF_EXPLAIN_NAMESPACES": "x",
			},
			[]string{"--address", address, "-o", "text", "-n", "ns", "widget", "w1"}, "ns", "w1"},
		"names of others": {"variables of the run command are ignored",
			environment{"KOPF_RUN_ADDRESS": "localhost:1", "KOPF_RUN_NAMESPACE": "x"},
			[]string{"--address", address, "widget", "ns/w1"}, "ns", "w1"},
		"strange names": {"special characters of a name are escaped in the request", nil,
			[]string{"--address", address, "widget", "ns/a&name=b c"}, "ns", "a&name=b c"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for variable, value := range c.environment {
				t.Setenv(variable, value)
			}
			asked = nil
			code, out, errs := explain(t, c.args...)
			want := url.Values{"kind": {"widget"}, "namespace": {c.namespace}, "name": {c.name}}
			if d := cmp.Diff(want, asked); d != "" || code != 0 {
				t.Errorf("%s: exit code %d: %s; -want, +asked:\n%s", c.reason, code, errs, d)
			}
			begin := "Widget.example.org " + c.namespace + "/" + c.name + ", as seen by operator test.example.org"
			if !strings.HasPrefix(out, begin) {
				t.Errorf("%s: want %q, got %s", c.reason, begin, out)
			}
		})
	}
}

// TestExplainAsJSON shows that the output for programs is the answer of the operator.
func TestExplainAsJSON(t *testing.T) {
	var asked url.Values
	address := startExplainServer(t, "test.example.org", &asked)
	code, out, errs := explain(t, "--address", address, "widgets", "ns/w1", "-o", "json")
	var got journal.Explanation
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 {
		t.Fatalf("exit code %d, %s, and %v in: %s", code, errs, err, out)
	}
	if got.UID != "u1" || len(got.History) != 1 || !strings.HasPrefix(out, "{\n  \"operator\"") {
		t.Errorf("want the answer of the operator, indented, got %s", out)
	}
}

// TestExplainWithoutAnswer shows that an error without an answer says what to do.
func TestExplainWithoutAnswer(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	nobody := closed.Listener.Addr().String()
	var asked url.Values
	with := func(status int, text string) string {
		return startHTTPServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
		})
	}
	broken := startHTTPServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("{"))
	})
	cases := map[string]struct {
		reason, address, object string
		want                    []string
	}{
		"nobody": {"the error without an answer says where to look", nobody, "ns/w1", []string{
			"no operator answers at " + nobody, "is it running, and here?", "'kubectl exec'", "see --address",
			"connection refused",
		}},
		"another operator": {"an explanation of another operator is an error",
			startExplainServer(t, "other.example.org", &asked), "ns/w1",
			[]string{`is operator "other.example.org", not "test.example.org"`, "--debug-bind-address of run"}},
		"another operator that refuses": {"an error of another operator is replaced by the hint at the wrong operator",
			startExplainServer(t, "other.example.org", &asked), "w1",
			[]string{`is operator "other.example.org", not "test.example.org"`}},
		"no namespace": {"the error of the operator is printed",
			startExplainServer(t, "test.example.org", &asked), "w1", []string{"use widget NAMESPACE/w1"}},
		"some page": {"a 404 of another server is an error", with(404, "404 page not found"), "ns/w1",
			[]string{"is not an operator that serves explanations: it responds with 404 Not Found; see --address"}},
		"some JSON": {"JSON with a status of 500 is an error", with(500, `{"message": "no"}`), "ns/w1",
			[]string{"is not an operator that serves explanations: it responds with 500 Internal Server Error"}},
		"a welcome": {"an HTML page is an error", with(200, "<html>Welcome</html>"), "ns/w1",
			[]string{"is not an operator that serves explanations: invalid character '<'"}},
		"JSON of others": {"JSON without the operator's name is an error", with(200, "{}"), "ns/w1",
			[]string{`is operator "", not "test.example.org"`}},
		"half": {"an incomplete answer is an error", broken, "ns/w1",
			[]string{"reading the answer of " + broken, "unexpected EOF"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			code, out, errs := explain(t, "widget", c.object, "--address", c.address)
			if code != 1 || out != "" {
				t.Errorf("%s: want exit code 1 and no output, got %d and %q", c.reason, code, out)
			}
			for _, want := range c.want {
				if !strings.Contains(errs, want) {
					t.Errorf("%s: want %q in: %s", c.reason, want, errs)
				}
			}
		})
	}
}

// TestExplainOfABrokenProgram shows that a program that cannot run returns its own error.
func TestExplainOfABrokenProgram(t *testing.T) {
	broken := errors.New("there is no operator")
	cmd := commandline.New(commandline.Program{Err: broken})
	cmd.SetErr(&strings.Builder{})
	cmd.SetArgs([]string{"explain", "widget", "ns/w1"})
	if err := cmd.ExecuteContext(t.Context()); !errors.Is(err, broken) {
		t.Errorf("want %v, got %v", broken, err)
	}
}

// TestDebugBindAddress shows that only the default address is optional: an address or a part that was requested must
// be served.
func TestDebugBindAddress(t *testing.T) {
	type environment map[string]string
	cases := map[string]struct {
		reason      string
		environment environment
		args        []string
		want        serving.Inspection
	}{
		"default": {"the default address is optional", nil, nil,
			serving.Inspection{Address: "localhost:8082", Optional: true}},
		"chosen": {"a chosen address is not optional", nil, []string{"--debug-bind-address", "localhost:9000"},
			serving.Inspection{Address: "localhost:9000"}},
		"as usual": {"the default address as a flag is not optional",
			nil, []string{"--debug-bind-address", "localhost:8082"},
			serving.Inspection{Address: "localhost:8082"}},
		"off": {"the address 0 switches the server off",
			nil, []string{"--debug-bind-address=0"}, serving.Inspection{Address: "0"}},
		"environment": {"an address in the environment is not optional",
			environment{"KOPF_RUN_DEBUG_BIND_ADDRESS": ":9000"}, nil,
			serving.Inspection{Address: ":9000"}},
		"console": {"the console makes the default address mandatory", nil, []string{"--console"},
			serving.Inspection{Address: "localhost:8082", Console: true}},
		"profiles": {"profiling makes the default address mandatory", environment{"KOPF_RUN_PROFILING": "1"}, nil,
			serving.Inspection{Address: "localhost:8082", Profiling: true}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			op := &fakeOperator{}
			got := runWith(t, op, c.environment, append([]string{"run", "-A"}, c.args...)...)
			if got.code != 0 || op.inspection != c.want {
				t.Errorf("%s: want %+v, got %+v; exit code %d: %s", c.reason, c.want, op.inspection, got.code, got.text)
			}
		})
	}
}
