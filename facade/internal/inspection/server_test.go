package inspection_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/inspection"
)

// served is a server at an address, which ends with the test.
func served(t *testing.T, address string, handler http.Handler) *inspection.Server {
	t.Helper()
	s, err := inspection.Serve(address, handler)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// asked asks a server for its standing, by some name of its.
func asked(t *testing.T, address, host string) (status int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/standing", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// A server of this machine answers to no other name, which somebody may have made point here: a page of theirs in a
// browser must not be able to read it.
func TestNamesOfThisMachine(t *testing.T) {
	s := served(t, "127.0.0.1:0", inspection.Handler(told(), inspection.Parts{}))
	cases := map[string]struct {
		reason, host string
		own          bool
	}{
		"name":              {"it is the usual one", "localhost:8082", true},
		"name alone":        {"browsers leave out the port 80", "localhost", true},
		"address":           {"it is its own", "127.0.0.1:8082", true},
		"address alone":     {"browsers leave out the port 80", "127.0.0.1", true},
		"another loopback":  {"it is one of this machine, too", "127.1.2.3:8082", true},
		"IPv6":              {"it is its own", "[::1]:8082", true},
		"IPv6 alone":        {"browsers leave out the port 80", "[::1]", true},
		"other name":        {"it may point here", "evil.example.org:8082", false},
		"other name alone":  {"it may point here", "evil.example.org", false},
		"within":            {"it is not ours", "localhost.example.org:8082", false},
		"behind":            {"it is not ours", "evil.localhost:8082", false},
		"number of others":  {"it may be redirected here", "10.0.0.1:8082", false},
		"IPv6 of others":    {"it may be redirected here", "[2001:db8::1]:8082", false},
		"all addresses":     {"browsers have let pages of others use it", "0.0.0.0:8082", false},
		"beginning like it": {"it is a name", "127.0.0.1.example.org", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			status, text := asked(t, s.Address(), c.host)
			if c.own && (status != http.StatusOK || !strings.Contains(text, `"operator": "test.example.org"`)) {
				t.Errorf("%s: want an answer, got %d: %s", c.reason, status, text)
			}
			if !c.own && (status != http.StatusForbidden || strings.Contains(text, "test.example.org") ||
				!strings.Contains(text, "call it localhost, not ")) {
				t.Errorf("%s: want it refused, got %d: %s", c.reason, status, text)
			}
		})
	}
}

// Whoever has it listen elsewhere knows by which names it is called there.
func TestNamesOfOtherListeners(t *testing.T) {
	s := served(t, ":0", inspection.Handler(told(), inspection.Parts{}))
	_, port, err := net.SplitHostPort(s.Address())
	if err != nil {
		t.Fatal(err)
	}
	if status, text := asked(t, "127.0.0.1:"+port, "operator.team.svc:8082"); status != http.StatusOK {
		t.Errorf("want an answer, got %d: %s", status, text)
	}
}

// An address that cannot be had is told with its cause.
func TestAddressesThatCannotBeHad(t *testing.T) {
	s := served(t, "127.0.0.1:0", http.NotFoundHandler())
	cases := map[string]struct{ reason, address, want string }{
		"taken":    {"somebody else has it", s.Address(), "address already in use"},
		"no port":  {"it is not said where", "localhost", "missing port in address"},
		"no place": {"there is no such port", "localhost:99999", "invalid port"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			other, err := inspection.Serve(c.address, http.NotFoundHandler())
			if err == nil {
				other.Close()
				t.Fatalf("%s: it is served", c.reason)
			}
			for _, want := range []string{"serving at the debug address " + c.address + ": ", c.want} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: want %q, got %v", c.reason, want, err)
				}
			}
		})
	}
}

// The end does not wait for anybody who asks.
func TestCloseEndsRequests(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan error, 1)
	s := served(t, "127.0.0.1:0", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		ended <- context.Cause(r.Context())
	}))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Address(), nil)
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		failed <- err
	}()
	<-begun
	s.Close()
	if err := <-failed; err == nil {
		t.Error("the request has an answer, though nobody gave one")
	}
	if err := <-ended; err == nil {
		t.Error("whoever answers is not told of the end")
	}
	if again, err := inspection.Serve(s.Address(), http.NotFoundHandler()); err != nil {
		t.Errorf("the address is not free: %v", err)
	} else {
		again.Close()
	}
}
