package reconcilers_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// TestScanOnce shows that an operator with ScanOnce reads no CRDs, and does not serve kinds that are installed later.
func TestScanOnce(t *testing.T) {
	for _, once := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			server, calls, crds := memapi.New(), atomic.Int64{}, atomic.Int64{}
			connection := interceptRequests(server, func(_ context.Context, r memapi.Request) int {
				if r.Resource.Plural == "customresourcedefinitions" {
					crds.Add(1)
				}
				return 0
			})
			stop := operateAll(t, connection, reconcilers.Options{ScanOnce: once},
				registrationFor(t, "configmaps", counting("c", cause.Create, &calls)),
				registrationFor(t, "category=sky", counting("c", cause.Create, &calls)))
			defer stop()
			time.Sleep(time.Second)
			p := newDirectClient(t, server)
			p.create("ConfigMap", "one")
			if err := p.Create(t.Context(), definition()); err != nil {
				t.Fatal(err)
			}
			comet := p.object("Comet", "one")
			comet.SetAPIVersion("sky.example.org/v1")
			if err := p.Create(t.Context(), comet); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			want := int64(2)
			if once {
				want = 1
			}
			if calls.Load() != want || (crds.Load() == 0) != once {
				t.Errorf("once: %t, objects handled: %d, want %d; requests for CRDs: %d",
					once, calls.Load(), want, crds.Load())
			}
		})
	}
}
