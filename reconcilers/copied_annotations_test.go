package reconcilers_test

import (
	"maps"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/retry"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// copyForAMinute merges the annotations of the config map into the secret for a minute, like another controller.
func (p directClient) copyForAMinute(merge func(all, copied map[string]string) map[string]string) {
	p.t.Helper()
	for range 600 {
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			secret := p.get("Secret", "s")
			secret.SetAnnotations(merge(secret.GetAnnotations(), p.get("ConfigMap", "c").GetAnnotations()))
			return p.Update(p.t.Context(), secret)
		})
		if err != nil {
			p.t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestAnnotationsCopiedBetweenKinds shows that a controller that keeps replacing the annotations of one handled kind by
// those of another one causes no creations, and fewer and fewer writes.
func TestAnnotationsCopiedBetweenKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, registry := memapi.New(), prometheus.NewRegistry()
		p := newDirectClient(t, server)
		p.create("ConfigMap", "c")
		p.create("Secret", "s")
		var sources, copies atomic.Int64
		writes := server.Connect()
		stop := operateAll(t, writes, reconcilers.Options{
			Settings: reconcilers.Settings{BoundTo: "coming.example.org/handled-uid"},
			Metrics:  registry,
		},
			registrationFor(t, "configmaps", counting("c", cause.Create, &sources)),
			registrationFor(t, "secrets", counting("s", cause.Create, &copies)))
		defer stop()
		time.Sleep(time.Second)
		p.copyForAMinute(func(_, copied map[string]string) map[string]string { return copied })
		if sources.Load() != 1 || copies.Load() != 1 {
			t.Errorf("%d and %d creations in a minute, want one of each", sources.Load(), copies.Load())
		}
		if patches := patchesOf(writes); patches > 12 {
			t.Errorf("%d writes in a minute, want one per object and one per doubled delay", patches)
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
			t.Errorf("%v losses are counted, want one per doubled delay", losses)
		}
	})
}

// TestAnnotationsAddedToAnotherKind shows that a controller that adds the annotations of one handled kind to another
// one causes no creations and no writes, even after a restart of the operator.
func TestAnnotationsAddedToAnotherKind(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		p.create("ConfigMap", "c")
		p.create("Secret", "s")
		var sources, copies, updates atomic.Int64
		operate := func(connection *memapi.Connection) (stop func()) {
			return operateAll(
				t,
				connection,
				reconcilers.Options{Settings: reconcilers.Settings{BoundTo: "coming.example.org/handled-uid"}},
				registrationFor(t, "configmaps", counting("c", cause.Create, &sources)),
				registrationFor(t, "secrets", counting("s", cause.Create, &copies)),
				registrationFor(t, "secrets", counting("u", cause.Update, &updates)),
			)
		}
		add := func(all, copied map[string]string) map[string]string {
			maps.Copy(all, copied)
			return all
		}
		stop := operate(server.Connect())
		time.Sleep(time.Second)
		p.copyForAMinute(add)
		stop()
		if sources.Load() != 1 || copies.Load() != 1 {
			t.Errorf("%d and %d creations in a minute, want one of each", sources.Load(), copies.Load())
		}
		restarted := server.Connect()
		stop = operate(restarted)
		defer stop()
		time.Sleep(time.Second)
		p.copyForAMinute(add)
		if sources.Load() != 1 || copies.Load() != 1 || updates.Load() != 0 {
			t.Errorf("%d and %d creations, and %d updates after a restart, want no further ones",
				sources.Load()-1, copies.Load()-1, updates.Load())
		}
		if patches := patchesOf(restarted); patches != 0 {
			t.Errorf("%d writes after a restart, want none", patches)
		}
	})
}

func patchesOf(c *memapi.Connection) (count int) {
	for _, r := range c.Requests() {
		if r.Verb == "patch" {
			count++
		}
	}
	return count
}
