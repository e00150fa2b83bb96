package inspection_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/inspection"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// fixedState is an operator with a fixed standing.
type fixedState journal.OperatorState

func (l fixedState) OperatorState() journal.OperatorState { return journal.OperatorState(l) }

// newWidgetJournal returns the journal of an operator that serves widgets and has seen one.
func newWidgetJournal() *journal.Journal {
	j := journal.New(journal.RetentionLimits{})
	widget := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}
	kind := j.ForKind(widget.GroupKind(), nil)
	served := kind.ServedKind(discovery.Resource{GroupVersionKind: widget, Plural: "widgets", Namespaced: true}, nil)
	served.Namespaces = []string{""}
	j.SetLive(fixedState{Operator: "test.example.org", Running: true, Kinds: []journal.ServedKind{served}})
	kind.ForObject(types.NamespacedName{Namespace: "ns", Name: "w1"}, "u1").RecordEvent("ADDED", "7")
	return j
}

// failingSource is a journal that fails for every question.
type failingSource struct{ *journal.Journal }

func (failingSource) Explain(string, types.NamespacedName) (journal.Explanation, error) {
	return journal.Explanation{}, errors.New("out of paper")
}

func sendRequest(from inspection.AnswerSource, method, target string) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	inspection.NewHandler(from, inspection.ExtraHandlers{}).ServeHTTP(recorder,
		httptest.NewRequest(method, target, nil))
	return recorder
}

const widgetQuery = "/explain?kind=widget&namespace=ns&name=w1"

const jsonType, textType = "application/json; charset=utf-8", "text/plain; charset=utf-8"

// TestAnswersToRequests shows that each answer has a status for programs and a text for people.
func TestAnswersToRequests(t *testing.T) {
	const question = "give the kind and the name of an object: /explain?kind=KIND&namespace=NAMESPACE&name=NAME"
	cases := map[string]struct {
		reason         string
		from           inspection.AnswerSource
		method, target string
		status         int
		contentType    string
		want           string
	}{
		"no question": {"a request without parameters is answered with the required ones",
			newWidgetJournal(), "GET", "/explain", 400, jsonType, question},
		"no name": {"a missing name is answered with the required parameters",
			newWidgetJournal(), "GET", "/explain?kind=widget&namespace=ns", 400,
			jsonType, question},
		"no kind": {"a missing kind is answered with the required parameters",
			newWidgetJournal(), "GET", "/explain?namespace=ns&name=w1", 400,
			jsonType, question},
		"no namespace": {"a missing namespace of a namespaced kind is an error",
			newWidgetJournal(), "GET", "/explain?kind=widget&name=w1", 404, jsonType,
			"kind Widget.example.org is namespaced: use widget NAMESPACE/w1"},
		"unknown kind": {"an unknown kind is an error that names the served kinds",
			newWidgetJournal(), "GET", "/explain?kind=gadget&name=w1", 404, jsonType,
			`operator "test.example.org" does not serve kind "gadget": it serves Widget.example.org`},
		"errors as JSON": {"an error is JSON even if text is requested", newWidgetJournal(), "GET",
			"/explain?output=text", 400,
			jsonType, question},
		"fault": {"an error of the journal has the status 500",
			failingSource{newWidgetJournal()}, "GET", "/explain?kind=widget&name=w1", 500,
			jsonType, "out of paper"},
		"other page": {"an unknown page below /explain is not found", newWidgetJournal(), "GET", "/explain/more", 404,
			textType, "404 page not found\n"},
		"first page": {"the first page is not found without a console",
			newWidgetJournal(), "GET", "/", 404, textType, "404 page not found\n"},
		"post": {"POST is not allowed for explanations",
			newWidgetJournal(), "POST", "/explain?kind=widget&name=w1", 405, textType, ""},
		"post standing": {"DELETE is not allowed for the standing", newWidgetJournal(), "DELETE", "/standing", 405,
			textType, ""},
		"json": {"JSON is the default output", newWidgetJournal(), "GET", widgetQuery, 200, jsonType, ""},
		"json by name": {"JSON can be requested", newWidgetJournal(),
			"GET", widgetQuery + "&output=json", 200, jsonType, ""},
		"text": {"text can be requested", newWidgetJournal(),
			"GET", widgetQuery + "&output=text", 200, textType, ""},
		"head": {"HEAD is answered for explanations", newWidgetJournal(), "HEAD", widgetQuery, 200, jsonType, ""},
		"standing": {"the standing does not need parameters", newWidgetJournal(), "GET", "/standing", 200,
			jsonType, ""},
		"head standing": {"HEAD is answered for the standing", newWidgetJournal(), "HEAD", "/standing", 200, jsonType,
			""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := sendRequest(c.from, c.method, c.target)
			if got.Code != c.status || got.Header().Get("Content-Type") != c.contentType {
				t.Errorf("%s: want status %d and %s, got %d and %s", c.reason, c.status, c.contentType, got.Code,
					got.Header().Get("Content-Type"))
			}
			if got.Header().Get("X-Content-Type-Options") != "nosniff" ||
				got.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s: the headers must forbid guessing types and caching: %v", c.reason, got.Header())
			}
			if c.want == "" {
				return
			}
			text := got.Body.String()
			var problem inspection.Problem
			if c.contentType == jsonType && json.Unmarshal([]byte(text), &problem) == nil {
				text = problem.Error
			}
			if text != c.want {
				t.Errorf("%s: want %q, got %q", c.reason, c.want, text)
			}
		})
	}
}

// TestExplanationsInBothForms shows that an explanation has the same contents as JSON and as text.
func TestExplanationsInBothForms(t *testing.T) {
	j := newWidgetJournal()
	want, err := j.Explain("widget", types.NamespacedName{Namespace: "ns", Name: "w1"})
	if err != nil {
		t.Fatal(err)
	}
	var got journal.Explanation
	body := sendRequest(j, "GET", widgetQuery).Body
	if err := json.Unmarshal(body.Bytes(), &got); err != nil {
		t.Fatalf("decoding %s: %v", body, err)
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(journal.Explanation{}, "At")); d != "" {
		t.Errorf("JSON; -want, +got:\n%s", d)
	}
	text := sendRequest(j, "GET", widgetQuery+"&output=text").Body.String()
	if !strings.HasPrefix(text, "Widget.example.org ns/w1, as seen by operator test.example.org at ") ||
		!strings.Contains(text, "event ADDED, version 7\n") {
		t.Errorf("want the explanation as text, got %s", text)
	}
}

// TestStanding shows that the standing is indented JSON, which people can read without a tool.
func TestStanding(t *testing.T) {
	const want = `{
  "operator": "test.example.org",
  "running": true,
  "kinds": [
    {
      "kind": "Widget",
      "group": "example.org",
      "version": "v1",
      "resource": "widgets",
      "namespaced": true,
      "namespaces": [
        ""
      ],
      "handlers": []
    }
  ]
}
`
	if d := cmp.Diff(want, sendRequest(newWidgetJournal(), "GET", "/standing").Body.String()); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

// TestAllowedMethods shows that a request to change something is answered with the allowed methods.
func TestAllowedMethods(t *testing.T) {
	if got := sendRequest(newWidgetJournal(), http.MethodPut, "/explain").Header().Get("Allow"); got != "GET, HEAD" {
		t.Errorf("want GET, HEAD allowed, got %q", got)
	}
}

// TestParts shows that the console and the profiles are served if they are enabled.
func TestParts(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.URL.Path)) })
	console, profiling := inspection.ExtraHandlers{Console: page}, inspection.ExtraHandlers{Profiling: true}
	for name, c := range map[string]struct {
		reason, path string
		parts        inspection.ExtraHandlers
		status       int
		want         string // part of the answer, or the target of a redirect
	}{
		"console": {"an enabled console is served", "/console", console, 200, "/console"},
		"its parts": {"paths below the console are served",
			"/console/script.js", console, 200, "/console/script.js"},
		"beside it":   {"a path that only begins like the console is not found", "/consoles", console, 404, ""},
		"first page":  {"the first page redirects to the console", "/", console, 302, "/console"},
		"other pages": {"other pages do not redirect to the console", "/index.html", console, 404, ""},
		"no console":  {"a disabled console is not found", "/console", profiling, 404, ""},
		"no parts":    {"paths below a disabled console are not found", "/console/script.js", profiling, 404, ""},
		"nothing":     {"the first page is not found without a console", "/", profiling, 404, ""},
		"profiles":    {"enabled profiles are listed", "/debug/pprof/", profiling, 200, "full goroutine stack dump"},
		"goroutines": {"a single profile is served",
			"/debug/pprof/goroutine?debug=1", profiling, 200, "goroutine profile: "},
		"command line": {"the command line is served for pprof", "/debug/pprof/cmdline", profiling, 200, ".test"},
		"symbols":      {"symbols are served for pprof", "/debug/pprof/symbol", profiling, 200, "num_symbols: 1"},
		"CPU":          {"a CPU profile ends with its client", "/debug/pprof/profile?seconds=60", profiling, 200, ""},
		"trace":        {"a trace ends with its client", "/debug/pprof/trace?seconds=60", profiling, 200, ""},
		"no profiles":  {"disabled profiles are not found", "/debug/pprof/", console, 404, ""},
		"no symbols":   {"disabled symbols are not found", "/debug/pprof/symbol", console, 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := httptest.NewRecorder()
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // so that profiles end at once
			request := httptest.NewRequest(http.MethodGet, c.path, nil).WithContext(ctx)
			inspection.NewHandler(newWidgetJournal(), c.parts).ServeHTTP(recorder, request)
			got := recorder.Header().Get("Location") + recorder.Body.String()
			if recorder.Code != c.status || !strings.Contains(got, c.want) {
				t.Errorf("%s: want status %d with %q, got %d: %s", c.reason, c.status, c.want, recorder.Code, got)
			}
		})
	}
}
