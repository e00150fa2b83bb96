package kopf_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
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
		m := newCheckedManager(managerOn(t, s.server))
		if err := op.SetupWithManager(m); err != nil {
			t.Fatal(err)
		}
		stop := startManager(t, m)
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
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
