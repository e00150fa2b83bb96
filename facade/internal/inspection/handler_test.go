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

	"github.com/kopf-runtime/kopf-runtime/facade/internal/inspection"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// live is an operator that stands like this.
type live journal.Standing

func (l live) Standing() journal.Standing { return journal.Standing(l) }

// told is the journal of an operator that serves widgets, and has met one.
func told() *journal.Journal {
	j := journal.New(journal.Limits{})
	widget := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}
	kind := j.Kind(widget.GroupKind(), nil)
	served := kind.Served(discovery.Resource{GroupVersionKind: widget, Plural: "widgets", Namespaced: true}, nil)
	served.Namespaces = []string{""}
	j.Watch(live{Operator: "test.example.org", Running: true, Kinds: []journal.Served{served}})
	kind.Object(types.NamespacedName{Namespace: "ns", Name: "w1"}, "u1").Event("ADDED", "7")
	return j
}

// failing is a journal that cannot answer, for no fault of the question.
type failing struct{ *journal.Journal }

func (failing) Explain(string, types.NamespacedName) (journal.Explanation, error) {
	return journal.Explanation{}, errors.New("out of paper")
}

func answered(from inspection.Journal, method, target string) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	inspection.Handler(from, inspection.Parts{}).ServeHTTP(recorder, httptest.NewRequest(method, target, nil))
	return recorder
}

const askedFor = "/explain?kind=widget&namespace=ns&name=w1"

const jsonType, textType = "application/json; charset=utf-8", "text/plain; charset=utf-8"

// Each request has a status that programs understand, and an answer that people do.
func TestAnswersToRequests(t *testing.T) {
	const question = "give the kind and the name of an object: /explain?kind=KIND&namespace=NAMESPACE&name=NAME"
	cases := map[string]struct {
		reason         string
		from           inspection.Journal
		method, target string
		status         int
		contentType    string
		want           string
	}{
		"no question": {"it is told how to ask", told(), "GET", "/explain", 400, jsonType, question},
		"no name": {"it is told how to ask", told(), "GET", "/explain?kind=widget&namespace=ns", 400,
			jsonType, question},
		"no kind": {"it is told how to ask", told(), "GET", "/explain?namespace=ns&name=w1", 400,
			jsonType, question},
		"no namespace": {"widgets have one", told(), "GET", "/explain?kind=widget&name=w1", 404, jsonType,
			"kind Widget.example.org is namespaced: use widget NAMESPACE/w1"},
		"unknown kind": {"it is told what there is", told(), "GET", "/explain?kind=gadget&name=w1", 404, jsonType,
			`operator "test.example.org" does not serve kind "gadget": it serves Widget.example.org`},
		"errors as JSON": {"also for those who want text", told(), "GET", "/explain?output=text", 400,
			jsonType, question},
		"fault": {"it is not the question that is wrong", failing{told()}, "GET", "/explain?kind=widget&name=w1", 500,
			jsonType, "out of paper"},
		"other page": {"there is no such page", told(), "GET", "/explain/more", 404,
			textType, "404 page not found\n"},
		"first page":    {"there is no such page", told(), "GET", "/", 404, textType, "404 page not found\n"},
		"post":          {"nothing can be changed", told(), "POST", "/explain?kind=widget&name=w1", 405, textType, ""},
		"post standing": {"nothing can be changed", told(), "DELETE", "/standing", 405, textType, ""},
		"json":          {"it is the default", told(), "GET", askedFor, 200, jsonType, ""},
		"json by name": {"it may be asked for", told(),
			"GET", askedFor + "&output=json", 200, jsonType, ""},
		"text": {"people ask for it", told(),
			"GET", askedFor + "&output=text", 200, textType, ""},
		"head":          {"it is a question, too", told(), "HEAD", askedFor, 200, jsonType, ""},
		"standing":      {"it needs no question", told(), "GET", "/standing", 200, jsonType, ""},
		"head standing": {"it is a question, too", told(), "HEAD", "/standing", 200, jsonType, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := answered(c.from, c.method, c.target)
			if got.Code != c.status || got.Header().Get("Content-Type") != c.contentType {
				t.Errorf("%s: want status %d and %s, got %d and %s", c.reason, c.status, c.contentType, got.Code,
					got.Header().Get("Content-Type"))
			}
			if got.Header().Get("X-Content-Type-Options") != "nosniff" ||
				got.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s: browsers guess, or keep it: %v", c.reason, got.Header())
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

// An explanation is the same as JSON, for programs, and as text, for people.
func TestExplanationsInBothForms(t *testing.T) {
	j := told()
	want, err := j.Explain("widget", types.NamespacedName{Namespace: "ns", Name: "w1"})
	if err != nil {
		t.Fatal(err)
	}
	var got journal.Explanation
	body := answered(j, "GET", askedFor).Body
	if err := json.Unmarshal(body.Bytes(), &got); err != nil {
		t.Fatalf("decoding %s: %v", body, err)
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(journal.Explanation{}, "At")); d != "" {
		t.Errorf("JSON; -want, +got:\n%s", d)
	}
	text := answered(j, "GET", askedFor+"&output=text").Body.String()
	if !strings.HasPrefix(text, "Widget.example.org ns/w1, as seen by operator test.example.org at ") ||
		!strings.Contains(text, "event ADDED, version 7\n") {
		t.Errorf("want it as text, got %s", text)
	}
}

// The standing is JSON, in lines, so that people can read it without a tool.
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
	if d := cmp.Diff(want, answered(told(), "GET", "/standing").Body.String()); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

// Whoever wants to change something is told what there is instead.
func TestAllowedMethods(t *testing.T) {
	if got := answered(told(), http.MethodPut, "/explain").Header().Get("Allow"); got != "GET, HEAD" {
		t.Errorf("want GET, HEAD allowed, got %q", got)
	}
}

// The console and the profiles are served beside the answers, if they are asked for.
func TestParts(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.URL.Path)) })
	console, profiling := inspection.Parts{Console: page}, inspection.Parts{Profiling: true}
	for name, c := range map[string]struct {
		reason, path string
		parts        inspection.Parts
		status       int
		want         string // in the answer, or the place it redirects to
	}{
		"console":      {"it is asked for", "/console", console, 200, "/console"},
		"its parts":    {"they are below it", "/console/script.js", console, 200, "/console/script.js"},
		"beside it":    {"the path only begins alike", "/consoles", console, 404, ""},
		"first page":   {"it leads to the console", "/", console, 302, "/console"},
		"other pages":  {"only the first page leads there", "/index.html", console, 404, ""},
		"no console":   {"it is off", "/console", profiling, 404, ""},
		"no parts":     {"it is off", "/console/script.js", profiling, 404, ""},
		"nothing":      {"there is nothing to lead to", "/", profiling, 404, ""},
		"profiles":     {"they are asked for", "/debug/pprof/", profiling, 200, "full goroutine stack dump"},
		"goroutines":   {"it is a profile", "/debug/pprof/goroutine?debug=1", profiling, 200, "goroutine profile: "},
		"command line": {"pprof shows it", "/debug/pprof/cmdline", profiling, 200, ".test"},
		"symbols":      {"pprof asks for them", "/debug/pprof/symbol", profiling, 200, "num_symbols: 1"},
		"CPU":          {"it ends with its client", "/debug/pprof/profile?seconds=60", profiling, 200, ""},
		"trace":        {"it ends with its client", "/debug/pprof/trace?seconds=60", profiling, 200, ""},
		"no profiles":  {"they are off", "/debug/pprof/", console, 404, ""},
		"no symbols":   {"they are off", "/debug/pprof/symbol", console, 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := httptest.NewRecorder()
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // so that profiles do not take their time
			request := httptest.NewRequest(http.MethodGet, c.path, nil).WithContext(ctx)
			inspection.Handler(told(), c.parts).ServeHTTP(recorder, request)
			got := recorder.Header().Get("Location") + recorder.Body.String()
			if recorder.Code != c.status || !strings.Contains(got, c.want) {
				t.Errorf("%s: want status %d with %q, got %d: %s", c.reason, c.status, c.want, recorder.Code, got)
			}
		})
	}
}
