package reconcilers_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

func TestBusy(t *testing.T) {
	gate := &reconcilers.Gate{}
	idle := gate.Idle()
	<-idle
	first, second := gate.Enter(), gate.Enter()
	if !first || !second || gate.Busy() != 2 {
		t.Fatalf("an open gate must permit two attempts: %d of 2 are busy", gate.Busy())
	}
	idle = gate.Idle()
	gate.Set(true)
	if gate.Enter() || gate.Open() {
		t.Error("Enter and Open must be false after the gate was closed")
	}
	gate.Leave()
	select {
	case <-idle:
		t.Error("the gate must not be idle while one attempt is running")
	default:
	}
	gate.Leave()
	<-idle
	<-gate.Idle()
	gate.Set(false)
	if !gate.Enter() || gate.Busy() != 1 {
		t.Errorf("a reopened gate must permit an attempt: %d of 1 is busy", gate.Busy())
	}
}

func TestPermissionToWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := &reconcilers.Gate{}
		want := func(open bool, reason string) {
			t.Helper()
			entered := gate.Enter()
			if gate.Open() != open || entered != open {
				t.Errorf("%s: want open %t", reason, open)
			}
			if entered {
				gate.Leave()
			}
		}
		gate.AllowWritesUntil(time.Now().Add(time.Minute))
		want(true, "before the end of the permission")
		time.Sleep(time.Minute)
		want(false, "after the end of the permission")
		gate.AllowWritesUntil(time.Now().Add(-time.Second))
		want(false, "after a permission that ends in the past")
		gate.Set(true)
		gate.AllowWritesUntil(time.Now().Add(time.Minute))
		want(false, "with permission, but closed")
		gate.Set(false)
		want(true, "with permission, and reopened")
		gate.AllowWritesUntil(time.Time{})
		time.Sleep(time.Hour)
		want(true, "with permission without an end")
	})
}

// TestWritesWithoutPermission shows that without permission, neither the engine nor a handler writes.
func TestWritesWithoutPermission(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		p.create("ConfigMap", "c")
		gate := &reconcilers.Gate{}
		var calls atomic.Int64
		h := counting("h", cause.Create, &calls)
		count := h.Call
		h.Call = func(ctx context.Context, call *handlers.Invocation) error {
			time.Sleep(10 * time.Second)
			return count(ctx, call)
		}
		gate.AllowWritesUntil(time.Now().Add(5 * time.Second))
		stop := operateAll(t, server, reconcilers.Options{Gate: gate}, registrationFor(t, "configmaps", h))
		defer stop()
		time.Sleep(time.Minute)
		if len(p.get("ConfigMap", "c").GetAnnotations()) != 0 || calls.Load() != 1 || gate.Busy() != 0 {
			t.Errorf("%d calls; busy: %d; annotations %v; want one call and no annotations", calls.Load(), gate.Busy(),
				p.get("ConfigMap", "c").GetAnnotations())
		}
		gate.AllowWritesUntil(time.Time{})
		time.Sleep(time.Minute)
		if len(p.get("ConfigMap", "c").GetAnnotations()) == 0 {
			t.Error("with permission again, the outcome must be written")
		}
	})
}
