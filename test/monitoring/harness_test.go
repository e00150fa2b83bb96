package monitoring_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

var shops = memapi.Resource{
	Group: "example.org", Version: "v1", Kind: "Shop", Plural: "shops", Namespaced: true, StatusSubresource: true,
}

type (
	change = kopf.Change[*kopf.Unstructured]
	run    = kopf.Task[*kopf.Unstructured]
)

var errNotYet = errors.New("not yet")

// harness is a cluster with an operator. It is made in a bubble.
type harness struct {
	t         *testing.T
	server    *memapi.Server
	registry  *prometheus.Registry
	transport http.RoundTripper
	runner    *facadetest.Runner
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	server := memapi.New()
	server.Install(shops)
	return &harness{t: t, server: server, registry: prometheus.NewRegistry(), transport: server}
}

// open puts a shop into the cluster.
func (w *harness) open(name string, size int64) {
	w.server.Put(shops, map[string]any{
		"metadata": map[string]any{"namespace": "default", "name": name, "uid": "uid-of-" + name},
		"spec":     map[string]any{"size": size},
	})
}

func (w *harness) resize(name string, size int64) {
	w.server.Edit(shops, "default", name, func(shop map[string]any) { shop["spec"] = map[string]any{"size": size} })
}

// start runs the operator, whose handlers are registered by the function, until it is at work.
func (w *harness) start(register func(all kopf.Selection[*kopf.Unstructured]), settings ...kopf.Settings) {
	w.t.Helper()
	op := kopf.New("shops.example.org", settings...)
	register(kopf.ForResource(op, "shops"))
	w.runner = facadetest.Start(w.t, op, facadetest.Against(memapi.Config(w.transport)),
		facadetest.Settings(kopf.RunSettings{Metrics: w.registry}))
	w.runner.Ready()
}

func (w *harness) stop() {
	w.t.Helper()
	if err := w.runner.Stop(); err != nil {
		w.t.Error(err)
	}
}

// values returns the metrics of our operator's shops, by the name without "kopf_" and the values of the distinguishing
// labels in the order of their names. Histograms have their counts.
func (w *harness) values() map[string]float64 {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := strings.TrimPrefix(family.GetName(), "kopf_")
			for _, label := range metric.GetLabel() {
				if label.GetName() != "operator" && label.GetName() != "kind" {
					name += " " + label.GetValue()
				}
			}
			values[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() +
				float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return values
}

// requireValues compares some of the values; those of ages may be a second older. A series that is missing is -1.
func (w *harness) requireValues(when string, wanted map[string]float64) {
	w.t.Helper()
	got := w.values()
	for name, want := range wanted {
		value, found := got[name]
		if !found {
			value = -1
		}
		if off := value - want; off < 0 || off > 1 || off > 0 && !strings.Contains(name, "age_seconds") {
			w.t.Errorf("%s: %s is %v, want %v", when, name, value, want)
		}
	}
}

// muteTransport is a connection to the server whose watches deliver nothing while it is mute, although they are
// accepted.
type muteTransport struct {
	next    http.RoundTripper
	isMuted atomic.Bool
}

func (m *muteTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := m.next.RoundTrip(r)
	if err == nil && r.URL.Query().Get("watch") == "true" {
		response.Body = mutedBody{response.Body, m, r.Context()}
	}
	return response, err
}

type mutedBody struct {
	io.ReadCloser
	transport *muteTransport
	ctx       context.Context
}

func (m mutedBody) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	if m.transport.isMuted.Load() {
		<-m.ctx.Done()
		return 0, fmt.Errorf("reading a watch: %w", m.ctx.Err())
	}
	return n, err
}

// failingTransport rejects patches while fail is set.
type failingTransport struct {
	next      http.RoundTripper
	isFailing atomic.Bool
}

func (f *failingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.isFailing.Load() && r.Method == http.MethodPatch {
		return nil, errors.New("the connection is broken")
	}
	return f.next.RoundTrip(r)
}

// failUntil fails until the attempt of that number, with pauses between them.
func failUntil(attempts int, pause time.Duration) func(context.Context, *change) error {
	return func(_ context.Context, c *change) error {
		if c.Retry < attempts {
			return kopf.Temporary(errNotYet, pause)
		}
		return nil
	}
}
