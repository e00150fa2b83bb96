package kopf_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// addPeer adds a peer of a higher priority with the given lifetime.
func (s *sharedPeering) addPeer(lifetime int64) {
	s.server.Edit(peerings, "", "shared", func(object map[string]any) {
		object["status"] = map[string]any{"him": map[string]any{
			"priority": int64(9), "lifetime": lifetime, "lastseen": time.Now().UTC().Format(time.RFC3339),
		}}
	})
}

// TestProbesAndMemosInAPause shows that a paused operator answers probes and is ready. Memos are kept during the pause;
// those of objects that are deleted meanwhile are removed after it.
func TestProbesAndMemosInAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t)
		op := kopf.New("test.example.org", kopf.Settings{Peering: kopf.PeeringSettings{Name: "shared", Identity: "me"}})
		var count, probes atomic.Int64
		op.OnProbe("probe", func(context.Context, *kopf.Activity) (any, error) { return probes.Add(1), nil })
		widgets := kopf.For(op, &Widget{})
		memo := kopf.NewMemo[int64](widgets)
		note := func(_ context.Context, c *Change) error {
			value := memo.Of(c.Object)
			*value++
			count.Store(*value)
			return nil
		}
		widgets.OnCreate("create", note)
		widgets.OnUpdate("update", note)
		made, err := ctrl.NewManager(memapi.Config(http.RoundTripper(s.server)), ctrl.Options{
			Scheme: newScheme(t), Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
		})
		if err != nil {
			t.Fatal(err)
		}
		m := newCheckedManager(made)
		if err := op.SetupWithManager(m); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Start(ctx) }()
		time.Sleep(time.Minute)
		s.addPeer(120)
		time.Sleep(time.Minute)
		s.resize(2)
		time.Sleep(30 * time.Second)
		before := probes.Load()
		if wrong := append(failing(m.readyzChecks), failing(m.healthzChecks)...); len(wrong) > 0 ||
			probes.Load() != before+1 {
			t.Errorf("in the pause: failing checks %q, %d probe calls, want none and 1", wrong, probes.Load()-before)
		}
		if count.Load() != 1 || memo.Len() != 1 {
			t.Errorf("in the pause: counted %d, %d memos, want 1 and 1", count.Load(), memo.Len())
		}
		time.Sleep(2 * time.Minute)
		if count.Load() != 2 {
			t.Errorf("after the pause: counted %d, want 2", count.Load())
		}
		s.addPeer(120)
		time.Sleep(time.Second)
		s.server.Discard(widgetResource, "ns", "w1")
		time.Sleep(time.Minute)
		if memo.Len() != 1 {
			t.Errorf("memos must be kept until the deletion is detected: %d memos", memo.Len())
		}
		time.Sleep(2 * time.Minute)
		if memo.Len() != 0 {
			t.Errorf("%d memos of an object that was deleted in the pause, want none", memo.Len())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestAdmissionInAPause shows that a paused operator answers reviews, with indices that are up to date.
func TestAdmissionInAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, on := newShared(t), &portlessServer{http.NewServeMux()}
		op := kopf.New("test.example.org", kopf.Settings{Peering: kopf.PeeringSettings{Name: "shared", Identity: "me"}})
		var calls atomic.Int64
		widgets := kopf.For(op, &Widget{})
		widgets.On("handle", []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate}, func(context.Context, *Change) error {
			calls.Add(1)
			return nil
		})
		sizes := kopf.NewIndex(widgets, "sizes", func(_ context.Context, w *Widget) (map[int64]string, error) {
			return map[int64]string{int64(w.Spec.Size): w.Name}, nil
		})
		widgets.Validate("size", func(context.Context, *Admission) error {
			return kopf.Deny(403, "%d of size 2", len(sizes.Get(2)))
		})
		m, err := ctrl.NewManager(memapi.Config(http.RoundTripper(s.server)), ctrl.Options{
			Scheme: newScheme(t), Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
			WebhookServer: on,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := op.SetupWithManager(m); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Start(ctx) }()
		want := func(when, message string, called int64) {
			t.Helper()
			status, verdict := on.post(t, "/test.example.org/validate/size", request(nil))
			if status != 200 || verdict.Status == nil || verdict.Status.Message != message || calls.Load() != called {
				t.Errorf("%s: got %d %v, and %d calls", when, status, verdict.Status, calls.Load())
			}
		}
		time.Sleep(time.Minute)
		want("before the pause", "0 of size 2", 1)
		s.addPeer(120)
		time.Sleep(time.Minute)
		s.resize(2)
		time.Sleep(30 * time.Second)
		want("in the pause", "1 of size 2", 1)
		time.Sleep(2 * time.Minute)
		want("after the pause", "1 of size 2", 2)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
