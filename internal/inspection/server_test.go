package inspection_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/inspection"
)

// startServer starts a server at an address and closes it at the end of the test.
func startServer(t *testing.T, address string, handler http.Handler) *inspection.Server {
	t.Helper()
	s, err := inspection.Serve(address, handler)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// requestStanding requests the standing under the given host name.
func requestStanding(t *testing.T, address, host string) (status int, text string) {
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

// TestNamesOfThisMachine shows that a local server refuses foreign host names. A foreign page in a browser could
// otherwise read it through a name that points to this machine.
func TestNamesOfThisMachine(t *testing.T) {
	s := startServer(t, "127.0.0.1:0", inspection.NewHandler(newWidgetJournal(), inspection.ExtraHandlers{}))
	cases := map[string]struct {
		reason, host string
		isAllowed    bool
	}{
		"name":             {"the name localhost is accepted", "localhost:8082", true},
		"name alone":       {"localhost without a port is accepted", "localhost", true},
		"address":          {"the loopback address is accepted", "127.0.0.1:8082", true},
		"address alone":    {"the loopback address without a port is accepted", "127.0.0.1", true},
		"another loopback": {"another loopback address is accepted", "127.1.2.3:8082", true},
		"IPv6":             {"the IPv6 loopback address is accepted", "[::1]:8082", true},
		"IPv6 alone":       {"the IPv6 loopback address without a port is accepted", "[::1]", true},
		"other name": {"a foreign name is refused, as it can point to this machine",
			"evil.example.org:8082", false},
		"other name alone": {"a foreign name without a port is refused", "evil.example.org", false},
		"within":           {"a domain below a name like localhost is refused", "localhost.example.org:8082", false},
		"behind":           {"a foreign subdomain of localhost is refused", "evil.localhost:8082", false},
		"number of others": {"a foreign IPv4 address is refused", "10.0.0.1:8082", false},
		"IPv6 of others":   {"a foreign IPv6 address is refused", "[2001:db8::1]:8082", false},
		"all addresses": {"the unspecified address is refused, as browsers let foreign pages use it",
			"0.0.0.0:8082", false},
		"beginning like it": {"a name that begins like an address is refused", "127.0.0.1.example.org", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			status, text := requestStanding(t, s.Address(), c.host)
			if c.isAllowed && (status != http.StatusOK || !strings.Contains(text, `"operator": "test.example.org"`)) {
				t.Errorf("%s: want an answer, got %d: %s", c.reason, status, text)
			}
			if !c.isAllowed && (status != http.StatusForbidden || strings.Contains(text, "test.example.org") ||
				!strings.Contains(text, "call it localhost, not ")) {
				t.Errorf("%s: want a refusal, got %d: %s", c.reason, status, text)
			}
		})
	}
}

// TestNamesOfOtherListeners shows that a server at another address accepts any host name.
func TestNamesOfOtherListeners(t *testing.T) {
	s := startServer(t, ":0", inspection.NewHandler(newWidgetJournal(), inspection.ExtraHandlers{}))
	_, port, err := net.SplitHostPort(s.Address())
	if err != nil {
		t.Fatal(err)
	}
	if status, text := requestStanding(t, "127.0.0.1:"+port, "operator.team.svc:8082"); status != http.StatusOK {
		t.Errorf("want an answer, got %d: %s", status, text)
	}
}

// TestUnusableAddresses shows that the error of an unusable address names its cause.
func TestUnusableAddresses(t *testing.T) {
	s := startServer(t, "127.0.0.1:0", http.NotFoundHandler())
	cases := map[string]struct{ reason, address, want string }{
		"taken":    {"an address in use is an error", s.Address(), "address already in use"},
		"no port":  {"an address without a port is an error", "localhost", "missing port in address"},
		"no place": {"a port out of range is an error", "localhost:99999", "invalid port"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			other, err := inspection.Serve(c.address, http.NotFoundHandler())
			if err == nil {
				other.Close()
				t.Fatalf("%s: the address is served", c.reason)
			}
			for _, want := range []string{"serving at the debug address " + c.address + ": ", c.want} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: want %q, got %v", c.reason, want, err)
				}
			}
		})
	}
}

// TestCloseEndsRequests shows that Close does not wait for open requests.
func TestCloseEndsRequests(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan error, 1)
	s := startServer(t, "127.0.0.1:0", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
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
		t.Error("the request must fail after Close, but it has an answer")
	}
	if err := <-ended; err == nil {
		t.Error("the context of the request must end with the server")
	}
	if again, err := inspection.Serve(s.Address(), http.NotFoundHandler()); err != nil {
		t.Errorf("the address must be free after Close: %v", err)
	} else {
		again.Close()
	}
}
