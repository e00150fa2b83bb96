package peering

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/ptr"
)

// testGate is a gate without a limit.
type testGate struct{ isClosed atomic.Bool }

func (g *testGate) Set(closed bool) { g.isClosed.Store(closed) }

func (*testGate) AllowWritesUntil(time.Time) {}

// An object counts from when it is applied, not from when a goroutine began to wait for the lock. The test runs in real
// time, because virtual time stops while a goroutine waits for a lock.
func TestObservationAfterWaiting(t *testing.T) {
	t.Parallel()
	m := Member{Self: testSelf, Name: "default"}.Join(t.Context(), nil, &testGate{})
	m.mu.Lock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Observe(map[string]any{
			"metadata": map[string]any{"name": "default", "resourceVersion": "1"},
			"status":   map[string]any{"him": map[string]any{}},
		})
	}()
	time.Sleep(50 * time.Millisecond)
	unlocked := time.Now()
	m.mu.Unlock()
	<-done
	if seen := m.state.peers.all["him"].firstSeen; seen.Before(unlocked) {
		t.Errorf("the record was seen %s before the lock was free", unlocked.Sub(seen))
	}
}

// The gate closes in time, even if the time of the last decision is old.
func TestAlarmAfterDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, began := &testGate{}, time.Now()
		m := Member{Self: testSelf, Name: "default", Acting: true}.Join(t.Context(), nil, gate)
		time.Sleep(50 * time.Second)
		m.mu.Lock()
		m.state.publish(Record{Lifetime: time.Minute, LastSeen: began, Busy: ptr.To(1)}, began)
		m.setAlarm(began.Add(10 * time.Second))
		m.mu.Unlock()
		time.Sleep(time.Until(m.state.lostAt))
		synctest.Wait()
		if !gate.isClosed.Load() {
			t.Error("the gate is open after the record was lost")
		}
	})
}
