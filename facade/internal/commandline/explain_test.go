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
	"github.com/kopf-runtime/kopf-runtime/facade/internal/inspection"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// standing is an operator that stands like this.
type standing journal.Standing

func (s standing) Standing() journal.Standing { return journal.Standing(s) }

// explaining is an operator of this name that answers questions, and has met widget ns/w1; asked is the last question.
func explaining(t *testing.T, name string, asked *url.Values) (address string) {
	t.Helper()
	j := journal.New(journal.Limits{})
	widget := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}
	kind := j.Kind(widget.GroupKind(), nil)
	served := kind.Served(discovery.Resource{GroupVersionKind: widget, Plural: "widgets", Namespaced: true}, nil)
	served.Namespaces = []string{""}
	j.Watch(standing{Operator: name, Running: true, Kinds: []journal.Served{served}})
	kind.Object(types.NamespacedName{Namespace: "ns", Name: "w1"}, "u1").Event("ADDED", "7")
	return answering(t, func(w http.ResponseWriter, r *http.Request) {
		*asked = r.URL.Query()
		inspection.Handler(j, inspection.Parts{}).ServeHTTP(w, r)
	})
}

func answering(t *testing.T, handler http.HandlerFunc) (address string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// explain runs the command, and gives the exit code, what it has printed, and what it has told of errors.
func explain(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	cmd := commandline.New(commandline.Program{Name: "test.example.org", Operator: &fakeOperator{}})
	var stdout, stderr strings.Builder
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(append([]string{"explain"}, args...))
	code = commandline.ExitCode(cmd.ExecuteContext(t.Context()))
	return code, stdout.String(), stderr.String()
}

// What is wrong with the command line is told before anybody is asked: nobody answers here.
func TestExplainFlags(t *testing.T) {
	type environment map[string]string
	nobody := answering(t, nil)
	cases := map[string]struct {
		reason      string
		environment environment
		args        string
		want        []string
	}{
		"nothing": {"it is told what it needs", nil, "",
			[]string{`0 arguments are given: it needs a kind and a name, such as "widget default/my-widget"`}},
		"no name":   {"it is told what it needs", nil, "widget", []string{"1 arguments are given: it needs"}},
		"two names": {"they are asked one by one", nil, "widget a b", []string{"3 arguments are given: it needs"}},
		"no name in it": {"something is to be told of", nil, "widget ns/",
			[]string{`"ns/" is neither NAME nor`}},
		"no namespace in it": {"it is a slip", nil, "widget /w1", []string{`"/w1" is neither NAME nor`}},
		"a slip":             {"there is no such flag", nil, "widget ns/w1 --addr x", []string{"unknown flag: --addr"}},
		"format": {"the right ones are told", nil, "widget ns/w1 -o yaml",
			[]string{`"yaml" is neither text nor json`}},
		"no format":  {"it is none", nil, "widget ns/w1 --output=", []string{`"" is neither text nor json`}},
		"namespaces": {"one of them is wrong", nil, "widget ns/w1 -n other", []string{"two namespaces: other and ns"}},
		"no address": {"a URL is none", nil, "widget ns/w1 --address http://localhost:1", []string{"--address: "}},
		"format of the environment": {"it is told where it comes from",
			environment{"KOPF_EXPLAIN_OUTPUT": "yaml"}, "widget ns/w1",
			[]string{`"yaml" is neither text nor json`, "Of the environment come --output (KOPF_EXPLAIN_OUTPUT)"}},
		"namespace of the environment": {"it is told where it comes from",
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
				t.Errorf("%s: want exit code 2 and nothing printed, got %d and %q", c.reason, code, out)
			}
			for _, want := range append(c.want, "explain --help' to see what there is") {
				if !strings.Contains(errs, want) {
					t.Errorf("%s: want %q in: %s", c.reason, want, errs)
				}
			}
		})
	}
}

// An operator is asked about the object that is meant, wherever its namespace and the address are given.
func TestExplainAsks(t *testing.T) {
	var asked url.Values
	address := explaining(t, "test.example.org", &asked)
	type environment map[string]string
	cases := map[string]struct {
		reason      string
		environment environment
		args        []string
		namespace   string
		name        string
	}{
		"before the name": {"it is short", nil, []string{"--address", address, "widget", "ns/w1"}, "ns", "w1"},
		"flag": {"kubectl has it so", nil,
			[]string{"--address", address, "widget", "w1", "-n", "ns"}, "ns", "w1"},
		"both": {"they agree", nil,
			[]string{"--address", address, "widget", "ns/w1", "--namespace=ns"}, "ns", "w1"},
		"environment": {"each flag has a variable",
			environment{
				"KOPF_EXPLAIN_ADDRESS": address, "KOPF_EXPLAIN_NAMESPACES": "ns", "KOPF_EXPLAIN_OUTPUT": "text",
			},
			[]string{"widget", "w1"}, "ns", "w1"},
		"flags win": {"they are more recent",
			environment{
				"KOPF_EXPLAIN_ADDRESS": "localhost:1", "KOPF_EXPLAIN_OUTPUT": "yaml", "KOPF_EXPLAIN_NAMESPACES": "x",
			},
			[]string{"--address", address, "-o", "text", "-n", "ns", "widget", "w1"}, "ns", "w1"},
		"names of others": {"variables of another command are not meant",
			environment{"KOPF_RUN_ADDRESS": "localhost:1", "KOPF_RUN_NAMESPACE": "x"},
			[]string{"--address", address, "widget", "ns/w1"}, "ns", "w1"},
		"strange names": {"they are names all the same", nil,
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

// For programs, there is what the operator has answered.
func TestExplainAsJSON(t *testing.T) {
	var asked url.Values
	address := explaining(t, "test.example.org", &asked)
	code, out, errs := explain(t, "--address", address, "widgets", "ns/w1", "-o", "json")
	var got journal.Explanation
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 {
		t.Fatalf("exit code %d, %s, and %v in: %s", code, errs, err, out)
	}
	if got.UID != "u1" || len(got.History) != 1 || !strings.HasPrefix(out, "{\n  \"operator\"") {
		t.Errorf("want what the operator knows, in lines, got %s", out)
	}
}

// Whoever does not get an answer is told what to do.
func TestExplainWithoutAnswer(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	nobody := closed.Listener.Addr().String()
	var asked url.Values
	with := func(status int, text string) string {
		return answering(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
		})
	}
	broken := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("{"))
	})
	cases := map[string]struct {
		reason, address, object string
		want                    []string
	}{
		"nobody": {"it may be elsewhere", nobody, "ns/w1", []string{
			"no operator answers at " + nobody, "is it running, and here?", "'kubectl exec'", "see --address",
			"connection refused",
		}},
		"another operator": {"its answer is not the one that is wanted",
			explaining(t, "other.example.org", &asked), "ns/w1",
			[]string{`is operator "other.example.org", not "test.example.org"`, "--debug-bind-address of run"}},
		"another operator that refuses": {"its error is about other kinds than those of this operator",
			explaining(t, "other.example.org", &asked), "w1",
			[]string{`is operator "other.example.org", not "test.example.org"`}},
		"no namespace": {"the operator says what is missing",
			explaining(t, "test.example.org", &asked), "w1", []string{"use widget NAMESPACE/w1"}},
		"some page": {"it is some server", with(404, "404 page not found"), "ns/w1",
			[]string{"is not an operator that serves explanations: it responds with 404 Not Found; see --address"}},
		"some JSON": {"it is some server", with(500, `{"message": "no"}`), "ns/w1",
			[]string{"is not an operator that serves explanations: it responds with 500 Internal Server Error"}},
		"a welcome": {"it is some server", with(200, "<html>Welcome</html>"), "ns/w1",
			[]string{"is not an operator that serves explanations: invalid character '<'"}},
		"JSON of others": {"it is no operator", with(200, "{}"), "ns/w1",
			[]string{`is operator "", not "test.example.org"`}},
		"half": {"it has ended meanwhile", broken, "ns/w1",
			[]string{"reading the answer of " + broken, "unexpected EOF"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			code, out, errs := explain(t, "widget", c.object, "--address", c.address)
			if code != 1 || out != "" {
				t.Errorf("%s: want exit code 1 and nothing printed, got %d and %q", c.reason, code, out)
			}
			for _, want := range c.want {
				if !strings.Contains(errs, want) {
					t.Errorf("%s: want %q in: %s", c.reason, want, errs)
				}
			}
		})
	}
}

// A program that cannot run says why, whatever is asked.
func TestExplainOfABrokenProgram(t *testing.T) {
	broken := errors.New("there is no operator")
	cmd := commandline.New(commandline.Program{Err: broken})
	cmd.SetErr(&strings.Builder{})
	cmd.SetArgs([]string{"explain", "widget", "ns/w1"})
	if err := cmd.ExecuteContext(t.Context()); !errors.Is(err, broken) {
		t.Errorf("want %v, got %v", broken, err)
	}
}

// An operator serves explanations at the default address if that is free, and at another one only if it can be had.
func TestDebugBindAddress(t *testing.T) {
	type environment map[string]string
	cases := map[string]struct {
		reason      string
		environment environment
		args        []string
		want        commandline.Inspection
	}{
		"default": {"it was not requested", nil, nil,
			commandline.Inspection{Address: "localhost:8082", Optional: true}},
		"chosen": {"it was requested", nil, []string{"--debug-bind-address", "localhost:9000"},
			commandline.Inspection{Address: "localhost:9000"}},
		"as usual": {"it was requested", nil, []string{"--debug-bind-address", "localhost:8082"},
			commandline.Inspection{Address: "localhost:8082"}},
		"off": {"it was switched off", nil, []string{"--debug-bind-address=0"}, commandline.Inspection{Address: "0"}},
		"environment": {"it was requested", environment{"KOPF_RUN_DEBUG_BIND_ADDRESS": ":9000"}, nil,
			commandline.Inspection{Address: ":9000"}},
		"console": {"a part was requested", nil, []string{"--console"},
			commandline.Inspection{Address: "localhost:8082", Console: true}},
		"profiles": {"a part was requested", environment{"KOPF_RUN_PROFILING": "1"}, nil,
			commandline.Inspection{Address: "localhost:8082", Profiling: true}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			op := &fakeOperator{}
			got := runWith(t, op, c.environment, append([]string{"run", "-A"}, c.args...)...)
			if got.code != 0 || op.inspect != c.want {
				t.Errorf("%s: want %+v, got %+v; exit code %d: %s", c.reason, c.want, op.inspect, got.code, got.text)
			}
		})
	}
}
