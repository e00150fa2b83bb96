package kopf_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// address waits for a line in the log and returns the value of the key.
func (g *recordingOperator) address(t *testing.T, message, key string) string {
	t.Helper()
	pattern := regexp.MustCompile(regexp.QuoteMeta(message) + `.*"` + key + `"="([^"]+)"`)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		g.mu.Lock()
		found := pattern.FindStringSubmatch(strings.Join(g.lines, "\n"))
		g.mu.Unlock()
		if found != nil {
			return found[1]
		}
		select {
		case err := <-g.err:
			t.Fatalf("the operator has ended: %v", err)
		case <-t.Context().Done():
			t.Fatal("the log has no address")
		case <-tick.C:
		}
	}
}

func visit(t *testing.T, url string) (status int, header http.Header, body io.Reader) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response.StatusCode, response.Header, response.Body
}

// TestConsole shows that the console has the objects of a running operator and the operator itself.
func TestConsole(t *testing.T) {
	server, g := memapi.New(), newRecordingOperator("guest.example.org")
	g.run(t, kopf.RunSettings{
		Config: memapi.Config(server), Metrics: prometheus.NewRegistry(),
		DebugBindAddress: "127.0.0.1:0", Console: true,
	})
	page := g.address(t, "Serving the console", "url")
	if status, header, _ := visit(t, page); status != http.StatusOK || header.Get("Content-Security-Policy") == "" {
		t.Errorf("%s: %d with %v", page, status, header)
	}
	<-g.op.Ready()
	createNamed(t, server, "a")
	_, _, stream := visit(t, page+"/events")
	events := bufio.NewScanner(stream)
	events.Buffer(nil, 1<<20)
	wanted := []string{
		`"operator":"guest.example.org","running":true`, `"kind":"ConfigMap"`, `"id":"c","on":"create"`,
		`"name":"a","state":"handled"`,
	}
	for len(wanted) > 0 && events.Scan() {
		for len(wanted) > 0 && strings.Contains(events.Text(), wanted[0]) {
			wanted = wanted[1:]
		}
	}
	if len(wanted) > 0 {
		t.Errorf("the event stream has ended without %q", wanted)
	}
	if err := g.end(); err != nil {
		t.Error(err)
	}
	if events.Scan(); events.Err() == nil && strings.HasPrefix(events.Text(), "event:") {
		t.Errorf("the event stream ends with the operator: got %q", events.Text())
	}
}

// TestNoConsole shows that the console is not served without the setting.
func TestNoConsole(t *testing.T) {
	g := newRecordingOperator("guest.example.org")
	g.run(t, kopf.RunSettings{
		Config: memapi.Config(memapi.New()), Metrics: prometheus.NewRegistry(), DebugBindAddress: "127.0.0.1:0",
	})
	address := "http://" + g.address(t, "Serving explanations", "address")
	for _, path := range []string{"/", "/console", "/console/events", "/console/object", "/debug/pprof/"} {
		if got, _, _ := visit(t, address+path); got != http.StatusNotFound {
			t.Errorf("%s is not found: got status %d", path, got)
		}
	}
	if err := g.end(); err != nil {
		t.Error(err)
	}
}

// TestDebugAddressIsMissing shows that the console and the profiles need an address.
func TestDebugAddressIsMissing(t *testing.T) {
	for want, settings := range map[string]kopf.RunSettings{
		`running operator "guest.example.org": Console: it is served at the DebugBindAddress: set it`: {Console: true},
		`running operator "guest.example.org": Profiling: it is served at the DebugBindAddress: set it`: {
			Profiling: true, DebugBindAddress: "0",
		},
	} {
		settings.Config = memapi.Config(memapi.New())
		if err := kopf.New("guest.example.org").Run(t.Context(), settings); err == nil || err.Error() != want {
			t.Errorf("a setting that needs the address is an error: want %q, got %v", want, err)
		}
	}
}

// TestDebugServer shows that one server has the explanations, the console and the profiles.
func TestDebugServer(t *testing.T) {
	server, g := memapi.New(), newRecordingOperator("guest.example.org")
	g.run(t, kopf.RunSettings{
		Config: memapi.Config(server), Metrics: prometheus.NewRegistry(),
		DebugBindAddress: "127.0.0.1:0", Console: true, Profiling: true,
	})
	address := "http://" + g.address(t, "Serving explanations", "address")
	if url := g.address(t, "Serving profiles", "url"); url != address+"/debug/pprof/" {
		t.Errorf("the log has the URL of the profiles: got %s", url)
	}
	for path, want := range map[string]string{
		"/":                              "text/html; charset=utf-8", // of the console
		"/standing":                      "application/json; charset=utf-8",
		"/debug/pprof":                   "text/html; charset=utf-8",
		"/debug/pprof/goroutine?debug=1": "text/plain; charset=utf-8",
	} {
		if status, header, _ := visit(t, address+path); status != http.StatusOK || header.Get("Content-Type") != want {
			t.Errorf("%s: %d with %v", path, status, header)
		}
	}
	if err := g.end(); err != nil {
		t.Error(err)
	}
}

// TestConsoleHandler shows that a project can serve the console with its own server.
func TestConsoleHandler(t *testing.T) {
	cluster, g := memapi.New(), newRecordingOperator("guest.example.org")
	server := httptest.NewServer(g.op.ConsoleHandler())
	t.Cleanup(server.Close)
	g.run(t, kopf.RunSettings{Config: memapi.Config(cluster), Metrics: prometheus.NewRegistry()})
	<-g.op.Ready()
	createNamed(t, cluster, "a")
	if status, header, _ := visit(t, server.URL+"/console"); status != http.StatusOK ||
		header.Get("Content-Security-Policy") == "" {
		t.Errorf("the console page is served: got %d with %v", status, header)
	}
	_, _, stream := visit(t, server.URL+"/console/events")
	events := bufio.NewScanner(stream)
	events.Buffer(nil, 1<<20)
	found := false
	for !found && events.Scan() {
		found = strings.Contains(events.Text(), `"name":"a","state":"handled"`)
	}
	if !found {
		t.Errorf("the stream has ended without the object: %v", events.Err())
	}
	if err := g.end(); err != nil {
		t.Error(err)
	}
	var none *kopf.Operator
	if status, _ := answerTo(none.ConsoleHandler(), "/console"); status != http.StatusNotFound {
		t.Errorf("a nil operator has no console: got status %d", status)
	}
}
