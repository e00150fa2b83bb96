package reconcilers_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/retry"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
)

// A controller that copies the annotations of one handled kind to another one all the time, as that of deployments does
// to replica sets, causes no creations, and ever fewer writes.
func TestAnnotationsCopiedBetweenKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, registry := memapi.New(), prometheus.NewRegistry()
		p := newPeople(t, server)
		p.create("ConfigMap", "c")
		p.create("Secret", "s")
		var sources, copies atomic.Int64
		writes := server.Connect()
		stop := operateAll(t, writes, reconcilers.Options{
			Metrics: registry, BoundTo: "coming.example.org/handled-uid",
		},
			to(t, "configmaps", counting("c", cause.Create, &sources)),
			to(t, "secrets", counting("s", cause.Create, &copies)))
		defer stop()
		time.Sleep(time.Second)
		for range 600 {
			if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
				copied := p.get("Secret", "s")
				copied.SetAnnotations(p.get("ConfigMap", "c").GetAnnotations())
				return p.Update(t.Context(), copied)
			}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if sources.Load() != 1 || copies.Load() != 1 {
			t.Errorf("%d and %d creations in a minute, want one of each", sources.Load(), copies.Load())
		}
		patches := 0
		for _, r := range writes.Requests() {
			if r.Verb == "patch" {
				patches++
			}
		}
		if patches > 12 {
			t.Errorf("%d writes in a minute, want one for each object and one for each doubled delay", patches)
		}
		losses := 0.0
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() == "kopf_memory_losses_total" {
				losses += family.GetMetric()[0].GetCounter().GetValue()
			}
		}
		if losses < 5 || losses > 8 {
			t.Errorf("%v losses are counted, want one for each doubled delay", losses)
		}
	})
}
