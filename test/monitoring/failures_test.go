package monitoring_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// From the moment a kind is served, its handlers have counters of failures, so that the first one is an increase.
// Handlers for all kinds do not have them in advance: each kind of the cluster would need some.
func TestTheFirstFailureIsAnIncrease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t)
		op := kopf.New("shops.example.org")
		kopf.ForResource(op, "shops").OnCreate("provision", func(context.Context, *change) error {
			return kopf.Permanent(errors.New("no such size"))
		})
		kopf.ForResource(op, "*").OnEvent("note", func(context.Context, *kopf.WatchEvent[*kopf.Unstructured]) error {
			return nil
		})
		w.runner = facadetest.Start(w.t, op, facadetest.Against(memapi.Config(w.transport)),
			facadetest.Settings(kopf.RunSettings{Metrics: w.registry}))
		w.runner.Ready()
		time.Sleep(time.Minute)
		w.requireValues("before", map[string]float64{
			"handler_attempts_total provision failure create": 0, "handler_attempts_total provision retry create": 0,
			"handler_attempts_total provision/* failure create": 0,
		})
		for name := range w.values() {
			if strings.Contains(name, "note") && strings.Contains(name, "failure") {
				t.Errorf("there is %q before anything has failed", name)
			}
		}
		w.open("a", 1)
		time.Sleep(time.Minute)
		w.requireValues("after", map[string]float64{"handler_attempts_total provision failure create": 1})
		w.stop()
	})
}

// Kinds of one name and different groups have different labels. The text is that of explain: Shop.example.org.
func TestKindsHaveTheirGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t)
		w.start(func(all kopf.Selection[*kopf.Unstructured]) {
			all.OnCreate("provision", failUntil(0, 0))
			all.OnEvent("note", func(context.Context, *kopf.WatchEvent[*kopf.Unstructured]) error { return nil })
			all.Timer("count", time.Minute, func(context.Context, *run) error { return nil })
		})
		w.open("a", 1)
		time.Sleep(time.Minute)
		families, err := w.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				for _, label := range metric.GetLabel() {
					if label.GetName() != "kind" {
						continue
					}
					if seen++; label.GetValue() != "Shop.example.org" {
						t.Errorf("%s: the kind is %q", family.GetName(), label.GetValue())
					}
				}
			}
		}
		if seen < 10 {
			t.Errorf("only %d series have a kind", seen)
		}
		w.stop()
	})
}
