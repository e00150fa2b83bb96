package server_test

import (
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/webhooks/server"
)

func TestMistakes(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		options server.Options
		says    string
	}{
		"NoSlash":  {"a path begins with one", server.Options{Path: "hooks"}, `"hooks"`},
		"EndSlash": {"it does not end with one", server.Options{Path: "/hooks/"}, `"/hooks/"`},
		"Wildcard": {"multiplexers would take it for a pattern", server.Options{Path: "/{hooks}"}, `"/{hooks}"`},
		"Twice": {
			"one of the handlers would never be called",
			server.Options{Endpoints: []server.Endpoint{{Path: "a", Handler: "x"}, {Path: "a", Handler: "y"}}}, `"y"`,
		},
		"NoPath": {
			"the root is nobody's", server.Options{Endpoints: []server.Endpoint{{Handler: "x"}}}, `"x"`,
		},
		"Redirected": {
			"the API server does not follow", server.Options{Endpoints: []server.Endpoint{
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
		refused      bool
	}{
		{"webhooks of the project are elsewhere", "/ops.example.org", false},
		{"two operators would answer for each other", "/ops.example.org", true},
		{"another operator has another name", "/more.example.org", false},
		{"the root takes what is left", "", false},
		{"once", "", true},
	} {
		s, err := server.New(server.Options{Operator: "ops", Path: tc.path, Reviewer: &reviewer{}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Register(on); (err != nil) != tc.refused {
			t.Errorf("%s: at %q, got the error %v", tc.reason, tc.path, err)
		}
	}
}

// hiding is a webhook server that does not show what is registered.
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
		t.Errorf("the panic of the webhook server is an error: got %v", err)
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
		if got.status != http.StatusOK || *asked.Hint != "a b/c" || asked.Type != wanted {
			t.Errorf("%s: got %d %s, and asked for %q, %q", path, got.status, got.text, *asked.Hint, asked.Type)
		}
		if string(asked.Body) != "{}" || asked.Headers.Get("User-Agent") == "" {
			t.Errorf("%s: body and headers arrive: got %q, %v", path, asked.Body, asked.Headers)
		}
		if !double.deadline {
			t.Errorf("%s: the API server does not wait for ever", path)
		}
	}
}

func TestGate(t *testing.T) {
	open := make(chan struct{})
	handler, err := server.New(server.Options{Operator: "ops", Open: open, Reviewer: &reviewer{}})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, server.Options{Operator: "ops", Open: open})
	if got := post(t, s, "/v", "{}"); got.status != http.StatusServiceUnavailable {
		t.Errorf("indices are not filled: got %d %s", got.status, got.text)
	}
	if handler.Check(nil) == nil {
		t.Error("who is not ready must not get requests")
	}
	close(open)
	if got := post(t, s, "/v", "{}"); got.status != http.StatusOK {
		t.Errorf("indices are filled: got %d %s", got.status, got.text)
	}
	if err := handler.Check(nil); err != nil {
		t.Errorf("it is ready: got the error %v", err)
	}
}
