package kopf_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestAdmissionOnStandby shows that a process that does not lead serves admission with current indices after its
// own startup, and calls no change handlers.
func TestAdmissionOnStandby(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	synctest.Test(t, func(t *testing.T) {
		server, on := memapi.New(), &portlessServer{http.NewServeMux()}
		server.Install(widgetResource)
		server.Put(widgetResource, body(map[string]any{"owner": "ann"}))
		op := kopf.New("test.example.org")
		var created, started, cleaned atomic.Int64
		var prefix atomic.Value
		op.OnStartup("slow", func(_ context.Context, s *kopf.Activity) error {
			time.Sleep(time.Minute)
			prefix.Store("owner-")
			started.Add(1)
			return nil
		})
		op.OnCleanup("c", func(context.Context, *kopf.Activity) error { cleaned.Add(1); return nil })
		widgets := kopf.For(op, &Widget{})
		owners := kopf.NewIndex(widgets, "owners", func(_ context.Context, w *Widget) (map[string]string, error) {
			return map[string]string{prefix.Load().(string) + w.Spec.Owner: w.Name}, nil
		})
		widgets.OnCreate("c", func(context.Context, *kopf.Change[*Widget]) error { created.Add(1); return nil })
		widgets.Validate("owner", func(context.Context, *Admission) error {
			return kopf.Deny(403, "ann has %d, bob has %d", len(owners.Get("owner-ann")), len(owners.Get("owner-bob")))
		})
		ready := newCheckedManager(managerOn(t, server, electingBy(&foreignLock{}),
			func(o *ctrl.Options) { o.WebhookServer = on }))
		if err := op.SetupWithManager(ready); err != nil {
			t.Fatal(err)
		}
		stop := startManager(t, ready)
		want := func(when string, status int, message string) {
			t.Helper()
			got, verdict := on.post(t, "/test.example.org/validate/owner", request(nil))
			if said := fmt.Sprint(verdict.Status); got != status || message != "" && verdict.Status.Message != message {
				t.Errorf("%s: unexpected response: got %d %s", when, got, said)
			}
			if unready := len(failing(ready.readyzChecks)) > 0; unready != (status == 503) {
				t.Errorf("%s: readiness: %q", when, failing(ready.readyzChecks))
			}
		}
		time.Sleep(30 * time.Second)
		want("before the startup handler has ended", 503, "")
		time.Sleep(time.Minute)
		want("after the startup handler has ended", 200, "ann has 1, bob has 0")
		server.Put(widgetResource, body(map[string]any{"owner": "bob"}))
		time.Sleep(time.Second)
		want("after a change of the object", 200, "ann has 0, bob has 1")
		time.Sleep(24 * time.Hour)
		want("a day later", 200, "ann has 0, bob has 1")
		if err := stop(); err != nil {
			t.Error(err)
		}
		if created.Load() != 0 || started.Load() != 1 || cleaned.Load() != 1 {
			t.Errorf("a standby process only runs startup and cleanup: created %d, started %d, cleaned up %d",
				created.Load(), started.Load(), cleaned.Load())
		}
	})
}
