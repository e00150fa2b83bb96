package kopf_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// cuttableTransport fails all requests while it is cut.
type cuttableTransport struct {
	next  http.RoundTripper
	isCut *atomic.Bool
}

func (c cuttableTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.isCut.Load() {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	return c.next.RoundTrip(r)
}

// TestServerIsBack shows that an outage of the API server logs one line at its beginning and one at its end, for all
// kinds together.
func TestServerIsBack(t *testing.T) {
	onWidgets(t, func(t *testing.T, server *memapi.Server) {
		config := memapi.Config(server)
		var cut atomic.Bool
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return cuttableTransport{next, &cut} })
		op := kopf.New("test.example.org")
		kopf.ForResource(op, "widgets").Timer("tick", time.Hour,
			func(context.Context, *kopf.Task[*kopf.Unstructured]) error { return nil })
		kopf.For(op, &corev1.ConfigMap{}).OnEvent("log",
			func(context.Context, *kopf.WatchEvent[*corev1.ConfigMap]) error { return nil })
		r := facadetest.Start(t, op, facadetest.Against(config))
		r.Ready()
		time.Sleep(time.Minute)
		for range 2 {
			cut.Store(true)
			time.Sleep(20 * time.Minute) // all watches have ended
			cut.Store(false)
			time.Sleep(10 * time.Minute)
		}
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
		var lines []string
		for line := range strings.Lines(r.Output()) {
			if strings.Contains(line, "API server is") || strings.Contains(line, "Operator st") ||
				strings.Contains(line, "list or watch") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		want := []string{
			"Operator started", "API server is unreachable", "API server is reachable again",
			"API server is unreachable", "API server is reachable again", "Operator stopped",
		}
		for i, line := range lines {
			if len(lines) != len(want) || !strings.Contains(line, want[i]) {
				t.Fatalf("want %q, got:\n%s", want, strings.Join(lines, "\n"))
			}
		}
		parts := []string{`kinds="v1 ConfigMap, widgets"`, "handlers=2", "namespaces=[*]", "coordination="}
		for _, part := range parts {
			if len(lines) == 0 || !strings.Contains(lines[0], part) {
				t.Errorf("the first line does not have %s: %q", part, lines)
			}
		}
	})
}
