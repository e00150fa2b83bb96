package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/webhooks/internal/server"
)

func TestMistakes(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		options server.Options
		says    string
	}{
		"NoSlash":  {"a path without a slash at the beginning is an error", server.Options{Path: "hooks"}, `"hooks"`},
		"EndSlash": {"a path with a slash at the end is an error", server.Options{Path: "/hooks/"}, `"/hooks/"`},
		"Wildcard": {"a path with a pattern of multiplexers is an error",
			server.Options{Path: "/{hooks}"}, `"/{hooks}"`},
		"Twice": {
			"two handlers with one path are an error",
			server.Options{Endpoints: []server.Endpoint{{Path: "a", Handler: "x"}, {Path: "a", Handler: "y"}}}, `"y"`,
		},
		"NoPath": {
			"a handler at the root is an error", server.Options{Endpoints: []server.Endpoint{{Handler: "x"}}}, `"x"`,
		},
		"Redirected": {
			"a path that a multiplexer would redirect is an error", server.Options{Endpoints: []server.Endpoint{
				{Path: "a//b", Handler: "x"},
			}}, `"x"`,
		},
	} {
		if _, err := server.New(tc.options); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %s: got the error %v, want one about %s", name, tc.reason, err, tc.says)
		}
	}
}

func TestRegister(t *testing.T) {
	on := webhook.NewServer(webhook.Options{})
	on.Register("/validate-example-org-v1-widget", http.NotFoundHandler())
	for _, tc := range []struct {
		reason, path string
		wantError    bool
	}{
		{"a path beside the project's webhooks is registered", "/ops.example.org", false},
		{"a second operator at the same path is an error", "/ops.example.org", true},
		{"a second operator at another path is registered", "/more.example.org", false},
		{"the root is registered beside other paths", "", false},
		{"a second operator at the root is an error", "", true},
	} {
		s, err := server.New(server.Options{Operator: "ops", Path: tc.path, Reviewer: &reviewer{}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Register(on); (err != nil) != tc.wantError {
			t.Errorf("%s: at %q, got the error %v", tc.reason, tc.path, err)
		}
	}
}

// hiding is a webhook server that does not show its registered paths.
type hiding struct{ webhook.Server }

func (hiding) WebhookMux() *http.ServeMux { return nil }

func TestRegisterPanics(t *testing.T) {
	s, err := server.New(server.Options{Operator: "ops", Path: "/x"})
	if err != nil {
		t.Fatal(err)
	}
	on := hiding{webhook.NewServer(webhook.Options{})}
	on.Register("/x/", http.NotFoundHandler())
	if err := s.Register(on); err == nil || !strings.Contains(err.Error(), "/x/") {
		t.Errorf("the panic of the webhook server must be an error: got %v", err)
	}
}

func TestEndpoints(t *testing.T) {
	double := &reviewer{}
	s := serve(t, server.Options{Path: "/ops", Reviewer: double, Endpoints: []server.Endpoint{
		{Path: "validate/a b/c", Handler: "a b/c", Type: "validating"},
		{Path: "mutate/a b/c", Handler: "a b/c", Type: "mutating"},
	}})
	for path, wanted := range map[string]string{
		"/ops/validate/a%20b/c": "validating", "/ops/mutate/a%20b%2Fc": "mutating",
	} {
		got := post(t, s, path+"?timeout=5s", "{}")
		asked := double.last(t)
		if got.status != http.StatusOK || *asked.HandlerID != "a b/c" || asked.Type != wanted {
			t.Errorf("%s: got %d %s, with the requested id %q and type %q",
				path, got.status, got.text, *asked.HandlerID, asked.Type)
		}
		if string(asked.Body) != "{}" || asked.Headers.Get("User-Agent") == "" {
			t.Errorf("%s: the body and the headers must arrive: got %q, %v", path, asked.Body, asked.Headers)
		}
		if !double.hasDeadline {
			t.Errorf("%s: the context must have a deadline", path)
		}
	}
}

// TestKopfsPaths shows that the root calls all handlers, and that an unknown id is not found (deviation
// D-admission-root).
func TestKopfsPaths(t *testing.T) {
	all := []server.Endpoint{{}, {Path: "fn/spec.a", Handler: "fn/spec.a"}, {Path: "validate/fn", Handler: "fn"}}
	for _, tc := range []struct {
		reason, path string
		atRoot       bool
		post, want   string // want is the requested id; "all" means all handlers, and an empty text the status 404
	}{
		{"the root of Kopf calls all handlers", "", false, "/", "all"},
		{"an id may have slashes", "", false, "/fn/spec.a", "fn/spec.a"},
		{"an id may be escaped", "", false, "/fn%2Fspec.a", "fn/spec.a"},
		{"an unknown id is not found", "", false, "/fm", ""},
		{"the root of the operator calls all handlers", "/ops", false, "/ops", "all"},
		{"a slash at the end is the same", "/ops", false, "/ops/", "all"},
		{"the root of the server is not found", "/ops", false, "/", ""},
		{"an id is served below the operator only", "/ops", false, "/fn/spec.a", ""},
		{"with AtRoot, the root of the server calls all handlers", "/ops", true, "/", "all"},
		{"with AtRoot, an id is served below the root", "/ops", true, "/fn/spec.a", "fn/spec.a"},
		{"with AtRoot, the operator's own path is still served", "/ops", true, "/ops/validate/fn", "fn"},
		{"with AtRoot, an unknown id is not found", "/ops", true, "/fm", ""},
	} {
		double := &reviewer{}
		s := serve(t, server.Options{Path: tc.path, AtRoot: tc.atRoot, Endpoints: all, Reviewer: double})
		status, got := post(t, s, tc.post, "{}").status, ""
		for _, asked := range double.requests {
			if got = "all"; asked.HandlerID != nil {
				got = *asked.HandlerID
			}
		}
		if got != tc.want || (status == http.StatusNotFound) != (tc.want == "") {
			t.Errorf("%s: POST %s below %q: got %d %q, want %q", tc.reason, tc.post, tc.path, status, got, tc.want)
		}
	}
}

// TestRootOfOthers shows that only the operator's own path is served if another handler serves the root.
func TestRootOfOthers(t *testing.T) {
	on := webhook.NewServer(webhook.Options{})
	on.Register("/", http.NotFoundHandler())
	s, err := server.New(server.Options{Operator: "ops", Path: "/ops", AtRoot: true, Endpoints: []server.Endpoint{{}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Register(on); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/ops/x": "/ops/", "/x": "/"} {
		_, pattern := on.WebhookMux().Handler(httptest.NewRequest(http.MethodPost, path, http.NoBody))
		if pattern != want {
			t.Errorf("%s is served by %q, want %q", path, pattern, want)
		}
	}
}

func TestHost(t *testing.T) {
	double := &reviewer{}
	s := serve(t, server.Options{Reviewer: double})
	post(t, s, "/v", "{}")
	if got := double.last(t).Headers; got.Get("Host") != s.Listener.Addr().String() || got.Get("User-Agent") == "" {
		t.Errorf("the host must be among the headers, as in Kopf: got %v", got)
	}
}

func TestGate(t *testing.T) {
	open := make(chan struct{})
	handler, err := server.New(server.Options{Operator: "ops", ReviewsReady: open, Reviewer: &reviewer{}})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, server.Options{Operator: "ops", ReviewsReady: open})
	if got := post(t, s, "/v", "{}"); got.status != http.StatusServiceUnavailable {
		t.Errorf("requests must be refused until the indices are filled: got %d %s", got.status, got.text)
	}
	if handler.CheckReadiness(nil) == nil {
		t.Error("the server must not be ready until the indices are filled")
	}
	close(open)
	if got := post(t, s, "/v", "{}"); got.status != http.StatusOK {
		t.Errorf("requests must be answered when the indices are filled: got %d %s", got.status, got.text)
	}
	if err := handler.CheckReadiness(nil); err != nil {
		t.Errorf("the server must be ready when the indices are filled: got the error %v", err)
	}
}
