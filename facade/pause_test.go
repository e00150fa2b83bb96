package facade_test

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
	"github.com/kopf-runtime/kopf-runtime/test/memapi"
)

// stay has a peer of a higher priority for some time.
func (s *shared) stay(lifetime int64) {
	s.server.Edit(peerings, "", "shared", func(object map[string]any) {
		object["status"] = map[string]any{"him": map[string]any{
			"priority": int64(9), "lifetime": lifetime, "lastseen": time.Now().UTC().Format(time.RFC3339),
		}}
	})
}

// In a pause, probes are answered still, and the operator is ready; memos are as they were when it goes on, and go with
// objects that go meanwhile.
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
		m := ask(made)
		if err := op.SetupWithManager(m); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Start(ctx) }()
		time.Sleep(time.Minute)
		s.stay(120)
		time.Sleep(time.Minute)
		s.resize(2)
		time.Sleep(30 * time.Second)
		before := probes.Load()
		if wrong := append(failing(m.ready), failing(m.alive)...); len(wrong) > 0 || probes.Load() != before+1 {
			t.Errorf("in the pause: %q, %d probes", wrong, probes.Load()-before)
		}
		if count.Load() != 1 || memo.Len() != 1 {
			t.Errorf("in the pause: counted %d, %d memos", count.Load(), memo.Len())
		}
		time.Sleep(2 * time.Minute)
		if count.Load() != 2 {
			t.Errorf("after the pause: counted %d, want 2", count.Load())
		}
		s.stay(120)
		time.Sleep(time.Second)
		s.server.Discard(served, "ns", "w1")
		time.Sleep(time.Minute)
		if memo.Len() != 1 {
			t.Errorf("it is not known yet that the object is gone: %d memos", memo.Len())
		}
		time.Sleep(2 * time.Minute)
		if memo.Len() != 0 {
			t.Errorf("%d memos of an object that has gone in the pause", memo.Len())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
