package reconcilers_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// stallLog collects the log lines about occupied workers.
type stallLog struct {
	mu    sync.Mutex
	lines []string
}

func (h *stallLog) log() logr.Logger {
	return funcr.New(func(_, line string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if strings.Contains(line, "occupy all workers") || strings.Contains(line, "not wait for workers") {
			h.lines = append(h.lines, line)
		}
	}, funcr.Options{})
}

func (h *stallLog) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	lines := h.lines
	h.lines = nil
	return lines
}

// gauges returns the values of a metric by handler.
func gauges(t *testing.T, registry *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() != name {
				continue
			}
			handler := ""
			for _, label := range metric.GetLabel() {
				if label.GetName() == "handler" {
					handler = label.GetValue()
				}
			}
			values[handler] += metric.GetGauge().GetValue()
		}
	}
	return values
}

// TestOccupiedWorkersAreLogged shows that the handlers that hold the workers are logged once when other objects wait
// for them, and that the end of the wait is logged.
func TestOccupiedWorkersAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, h, registry := memapi.New(), &stallLog{}, prometheus.NewRegistry()
		p := newDirectClient(t, server)
		release := make(chan struct{})
		waits := &handlers.Handler{ID: "waits", Call: func(ctx context.Context, _ *handlers.Invocation) error {
			select {
			case <-release:
			case <-ctx.Done():
			}
			return nil
		}}
		parent := &handlers.Handler{ID: "provision", Reason: cause.Create,
			Call: func(ctx context.Context, c *handlers.Invocation) error {
				if err := c.Subs.Declare(waits); err != nil {
					return err
				}
				return c.Subs.Run(ctx, nil)
			}}
		stop := operateLogged(
			t,
			server,
			h.log(),
			reconcilers.Options{Settings: reconcilers.Settings{Workers: 10}, Metrics: registry},
			registrationFor(t, "configmaps", parent),
		)
		defer stop()
		time.Sleep(time.Second)
		p.createMany("ConfigMap", "o", 9)
		time.Sleep(time.Hour)
		if lines := h.take(); len(lines) > 0 {
			t.Errorf("no object waits, so nothing must be logged: %q", lines)
		}
		p.createMany("ConfigMap", "late", 3)
		time.Sleep(9 * time.Second)
		if lines := h.take(); len(lines) > 0 {
			t.Errorf("a short wait must not be logged: %q", lines)
		}
		time.Sleep(time.Hour)
		lines := h.take()
		if len(lines) != 1 {
			t.Fatalf("a long wait must be logged once: %q", lines)
		}
		for _, part := range []string{
			`"kind"="ConfigMap"`, `"waiting"=3`, "provision: 9 objects, for up to 1h0m10s", "kopf.Timeout",
			"Settings.Queueing.WorkerLimit",
		} {
			if !strings.Contains(lines[0], part) {
				t.Errorf("the line does not contain %q: %s", part, lines[0])
			}
		}
		if d := cmp.Diff(map[string]float64{"provision": 9}, gauges(t, registry, "kopf_active_workers")); d != "" {
			t.Errorf("sub-handlers must run in the slots of their parents: -want, +got:\n%s", d)
		}
		if d := cmp.Diff(map[string]float64{"": 3}, gauges(t, registry, "kopf_workqueue_depth")); d != "" {
			t.Errorf("waiting objects: -want, +got:\n%s", d)
		}
		close(release)
		time.Sleep(time.Second)
		if lines := h.take(); len(lines) != 1 || !strings.Contains(lines[0], "any more") {
			t.Errorf("the end of the wait must be logged: %q", lines)
		}
		if d := cmp.Diff(map[string]float64{"provision": 0}, gauges(t, registry, "kopf_active_workers")); d != "" {
			t.Errorf("after all attempts have ended: -want, +got:\n%s", d)
		}
	})
}

// TestBusyWorkersAreNotLogged shows that neither busy workers nor those of an exiting operator are logged as occupied.
func TestBusyWorkersAreNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, h := memapi.New(), &stallLog{}
		p := newDirectClient(t, server)
		stop := operateLogged(
			t,
			server,
			h.log(),
			reconcilers.Options{Settings: reconcilers.Settings{Workers: 4}},
			registrationFor(t, "configmaps",
				&handlers.Handler{ID: "c", Reason: cause.Create, Call: func(
					ctx context.Context, _ *handlers.Invocation,
				) error {
					select {
					case <-time.After(5 * time.Second):
					case <-ctx.Done():
					}
					return nil
				}}),
		)
		for n := range 100 {
			p.create("ConfigMap", fmt.Sprint("o", n))
		}
		time.Sleep(time.Minute)
		stop()
		if lines := h.take(); len(lines) > 0 {
			t.Errorf("busy workers must not be logged as occupied: %q", lines)
		}
	})
}
