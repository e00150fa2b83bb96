package kopf_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// slowTransport delays each request by 10 ms, so that virtual time passes in a loop.
type slowTransport struct{ next http.RoundTripper }

func (s slowTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(10 * time.Millisecond)
	return s.next.RoundTrip(r)
}

// setNext returns a patch function that writes another value with each call.
func setNext(field string) func(*kopf.Unstructured) {
	n := 0
	return func(o *kopf.Unstructured) {
		n++
		_ = kopf.SetField(o, field, fmt.Sprint(n))
	}
}

// TestOwnLoops shows that handlers that trigger themselves by their own changes are logged once, counted, and called at
// growing intervals. Otherwise a case makes thousands of calls a minute.
func TestOwnLoops(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	type selection = kopf.Selection[*kopf.Unstructured]
	for name, tc := range map[string]struct {
		reason   string
		register func(s selection, called func())
		lines    int
		handlers string
		field    string
	}{
		"Event": {"an event handler that changes the object is slowed down", func(s selection, called func()) {
			next := setNext("status.at")
			s.OnEvent("e", func(_ context.Context, e *kopf.WatchEvent[*kopf.Unstructured]) error {
				called()
				e.Patch(next)
				return nil
			})
		}, 1, "e", "status.at"},
		"EventInTwoRequests": {"an event handler that writes the status and the spec is slowed down",
			func(s selection, called func()) {
				status, spec := setNext("status.at"), setNext("spec.at")
				s.OnEvent("e", func(_ context.Context, e *kopf.WatchEvent[*kopf.Unstructured]) error {
					called()
					e.Patch(status)
					e.Patch(spec)
					return nil
				})
			}, 1, "e", "spec.at status.at"},
		"EventBesideUpdate": {"an event handler is slowed down beside an update handler that writes, too",
			func(s selection, called func()) {
				next := setNext("spec.at")
				s.OnEvent("e", func(_ context.Context, e *kopf.WatchEvent[*kopf.Unstructured]) error {
					called()
					e.Patch(next)
					return nil
				})
				s.OnUpdate("u", ignoreUnstructured)
			}, 1, "e", "spec.at"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, registry := memapi.New(), prometheus.NewRegistry()
				server.Install(widgetResource)
				config := memapi.Config(server)
				config.Wrap(func(next http.RoundTripper) http.RoundTripper { return slowTransport{next} })
				var calls atomic.Int64
				op := kopf.New("test.example.org")
				tc.register(kopf.ForResource(op, "widgets"), func() { calls.Add(1) })
				r := facadetest.Start(t, op, facadetest.Against(config),
					facadetest.Settings(kopf.RunSettings{Metrics: registry}))
				r.Ready()
				server.Put(widgetResource, body(map[string]any{"size": int64(1)}))
				time.Sleep(5 * time.Second)
				edit := func(size int64) {
					server.Edit(widgetResource, "ns", "w1", func(o map[string]any) {
						o["spec"].(map[string]any)["size"] = size
					})
				}
				edit(2)
				time.Sleep(55 * time.Second)
				if n := calls.Load(); n > 20 {
					t.Errorf("%s: %d calls in a minute", tc.reason, n)
				}
				before := calls.Load()
				edit(3)
				time.Sleep(100 * time.Millisecond)
				if calls.Load() == before {
					t.Errorf("%s: an edit by another client is delayed", tc.reason)
				}
				counted := valueOf(t, registry, "kopf_handler_loops_total")
				if err := r.Stop(); err != nil {
					t.Error(err)
				}
				lines := 0
				for _, line := range strings.Split(r.Output(), "\n") {
					if !strings.Contains(line, "Handlers change the object each time") {
						continue
					}
					lines++
					if !strings.Contains(line, "handlers=["+tc.handlers+"]") ||
						!strings.Contains(line, "["+tc.field+"]") {
						t.Errorf("%s: the line does not name handler and field: %s", tc.reason, line)
					}
				}
				if lines != tc.lines || (counted > 0) != (tc.lines > 0) {
					t.Errorf("%s: %d lines, counted %v times, want %d lines", tc.reason, lines, counted, tc.lines)
				}
			})
		})
	}
}

func ignoreUnstructured(context.Context, *kopf.Change[*kopf.Unstructured]) error { return nil }

// valueOf returns the sum of all series of a counter.
func valueOf(t *testing.T, registry *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			for _, metric := range family.GetMetric() {
				sum += metric.GetCounter().GetValue()
			}
		}
	}
	return sum
}
