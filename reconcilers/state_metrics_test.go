package reconcilers_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// statesOf returns the gauges of a registry by their names and labels, without the label of the operator and the gauges
// of workers; ages are rounded to seconds.
func statesOf(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]float64{}
	for _, family := range families {
		name := strings.TrimPrefix(family.GetName(), "kopf_")
		for _, metric := range family.GetMetric() {
			if metric.GetGauge() == nil || name == "active_workers" || name == "workqueue_depth" {
				continue
			}
			labels := []string{name}
			for _, label := range metric.GetLabel() {
				if label.GetName() != "operator" {
					labels = append(labels, label.GetValue())
				}
			}
			states[strings.Join(labels, " ")] = math.Round(metric.GetGauge().GetValue())
		}
	}
	return states
}

// TestStates shows the gauges of the present state: a handler with several reasons counts once, kinds have the gauges
// of their handlers, indices are counted, and in a pause nothing counts as late.
func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, registry, gate := memapi.New(), prometheus.NewRegistry(), &reconcilers.Gate{}
		p := newDirectClient(t, server)
		p.create("ConfigMap", "c")
		p.createMany("Secret", "s", 2)
		late := func(context.Context, *handlers.Invocation) error { return errors.New("not yet") }
		_, filling := byName()
		defer operateAll(t, server, reconcilers.Options{Gate: gate, Metrics: registry},
			registrationFor(t, "configmaps", &handlers.Handler{ID: "late", FunctionKey: 1, Reason: cause.Create,
				Call: late}),
			registrationFor(t, "configmaps", &handlers.Handler{ID: "late", FunctionKey: 1, Reason: cause.Update,
				Call: late}),
			registrationFor(t, "configmaps", &handlers.Handler{ID: "soon", Reason: cause.Create, Call: succeed}),
			registrationFor(t, "secrets", daemon("d", handlers.BackgroundOptions{}, untilStopped)),
			registrationFor(t, "secrets", timer("t", time.Hour, succeed)), registrationFor(t, "secrets", filling))()
		time.Sleep(30 * time.Second)
		want := map[string]float64{
			"paused": 0, "paused_namespaces": 0,
			"retries_waiting late ConfigMap": 1, "retries_waiting soon ConfigMap": 0,
			"unhandled_changes ConfigMap": 1, "oldest_unhandled_change_age_seconds ConfigMap": 30,
			"daemons d Secret running": 2, "daemons d Secret waiting": 0, "daemons d Secret stopping": 0,
			"timers t Secret running": 0, "timers t Secret waiting": 2, "timers t Secret stopping": 0,
			"index_keys by-name": 2, "index_objects by-name": 2,
			"objects_paused ConfigMap": 0, "objects_paused Secret": 0, "objects_failed ConfigMap": 0,
			"objects_remembered ConfigMap": 1, "objects_remembered Secret": 0,
			"watch_age_seconds ConfigMap": 30, "watch_age_seconds Secret": 30,
		}
		if d := cmp.Diff(want, statesOf(t, registry)); d != "" {
			t.Errorf("at work: -want, +got:\n%s", d)
		}
		gate.Set(true)
		time.Sleep(time.Minute)
		want = map[string]float64{
			"paused": 1, "paused_namespaces": 0,
			"daemons d Secret running": 0, "daemons d Secret waiting": 0, "daemons d Secret stopping": 0,
			"timers t Secret running": 0, "timers t Secret waiting": 0, "timers t Secret stopping": 0,
			"index_keys by-name": 2, "index_objects by-name": 2,
			"objects_remembered ConfigMap": 1, "objects_remembered Secret": 0,
		}
		if d := cmp.Diff(want, statesOf(t, registry)); d != "" {
			t.Errorf("in a pause: -want, +got:\n%s", d)
		}
	})
}
