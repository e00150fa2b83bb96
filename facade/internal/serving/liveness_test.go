package serving_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"https://localhost/healthz":     "it must begin with http://",
		"localhost:8080":                "it must begin with http://",
		":8080":                         "no URL such as http://",
		"http://localhost:99999/":       "there is no port 99999",
		"http://user@localhost/":        "more than a host, a port and a path",
		"http://localhost/healthz?all":  "more than a host, a port and a path",
		"http://localhost:8080/healthz": "",
		"http:///healthz":               "",
		"http://:8080":                  "",
		"http://[::]:8080/a/b":          "",
	} {
		_, err := serving.ParseLivenessAddress(text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %q, got %v", text, want, err)
		}
	}
}

func TestHandler(t *testing.T) {
	gives := func(results map[string]any, err error) serving.LivenessProbe {
		return func(context.Context) (map[string]any, error) { return results, err }
	}
	fine := gives(map[string]any{"now": 1, "db": "up"}, nil)
	tests := map[string]struct {
		reason, method, path string
		probe                serving.LivenessProbe
		code                 int
		want                 string
	}{
		"Failure": {"the error of a probe is the answer",
			http.MethodGet, "/healthz", gives(nil, errors.New("boo")), 500, "boo\n"},
		"NoJSON": {"a result that is not JSON is an error that names the handler",
			http.MethodGet, "/healthz", gives(map[string]any{"a": func() {}}, nil),
			500, "probe: the result of handler \"a\": json: unsupported type: func()\n"},
		"OtherPath": {"another path is not found", http.MethodGet, "/healthz/", fine, 404, "404 page not found\n"},
		"OtherVerb": {"a method other than GET and HEAD is not allowed",
			http.MethodPost, "/healthz", fine, 405, "405 method not allowed\n"},
		"NoProbes": {"without probes, the answer is an empty object",
			http.MethodGet, "/healthz", gives(nil, nil), 200, "{}"},
		"Results": {"results are returned by handler id",
			http.MethodGet, "/healthz", fine, 200, `{"db":"up","now":1}`},
		"HeadersToo": {"HEAD returns the status alone", http.MethodHead, "/healthz", fine, 200, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(serving.LivenessHandler("/healthz", tc.probe))
			defer server.Close()
			request, err := http.NewRequestWithContext(t.Context(), tc.method, server.URL+tc.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := server.Client().Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			body, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != tc.code || string(body) != tc.want {
				t.Errorf("%s: want %d %q, got %d %q, %v", tc.reason, tc.code, tc.want, response.StatusCode, body, err)
			}
			if got := response.Header.Get("Content-Type"); tc.code == 200 && got != "application/json; charset=utf-8" {
				t.Errorf("content type %q", got)
			}
		})
	}
}

func TestAddressInUse(t *testing.T) {
	at, err := serving.ParseLivenessAddress("http://127.0.0.1:0/")
	if err != nil {
		t.Fatal(err)
	}
	first, err := serving.ServeLiveness(at, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	taken := "http://" + first.Addr().String() + "/healthz"
	if at, err = serving.ParseLivenessAddress(taken); err != nil {
		t.Fatal(err)
	}
	_, err = serving.ServeLiveness(at, nil)
	if err == nil || !strings.Contains(err.Error(), "serving the probes at "+taken+": ") {
		t.Errorf("want an error that names the address, got %v", err)
	}
}
