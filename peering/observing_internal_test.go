package peering

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/ptr"
)

// testGate is a gate that records whether it is closed, without a limit.
type testGate struct{ isClosed atomic.Bool }

func (g *testGate) Set(closed bool) { g.isClosed.Store(closed) }

func (*testGate) AllowWritesUntil(time.Time) {}

// pendingGate records whether a record is confirmed before the decision that follows. It relies on the lock of its
// membership.
type pendingGate struct{ isPending bool }

func (g *pendingGate) Set(bool) { g.isPending = false }

func (g *pendingGate) AllowWritesUntil(time.Time) { g.isPending = true }

// answeringObject is a peering object with a peer of a higher priority, or without peers.
type answeringObject struct {
	version int
	isAlone bool
}

func (a *answeringObject) PatchStatus(_ context.Context, status map[string]any, _ string) (map[string]any, error) {
	a.version++
	if !a.isAlone {
		status["him"] = map[string]any{"priority": int64(9), "lifetime": int64(3600)}
	}
	return map[string]any{
		"metadata": map[string]any{"name": "default", "resourceVersion": strconv.Itoa(a.version)}, "status": status,
	}, nil
}

// TestDecisionWithTheAnswer shows that the lock is not released between the confirmation of a record and the decision
// with the peers in the same answer. Otherwise, an alarm or an event could open the gate beside them. While several
// goroutines hold the lock for milliseconds, each release passes it to the next one.
func TestDecisionWithTheAnswer(t *testing.T) {
	t.Parallel()
	gate, isOver, wasReleased := &pendingGate{}, atomic.Bool{}, atomic.Bool{}
	m := Member{Self: testSelf, Name: "default"}.JoinObject(t.Context(), &answeringObject{}, gate)
	var others sync.WaitGroup
	for range 3 {
		others.Go(func() {
			for !isOver.Load() {
				m.mu.Lock()
				if gate.isPending {
					wasReleased.Store(true)
				}
				time.Sleep(2 * time.Millisecond)
				m.mu.Unlock()
			}
		})
	}
	time.Sleep(20 * time.Millisecond) // until all of them wait for the lock
	for range 10 {
		if err := m.writeOwnRecord(t.Context()); err != nil {
			t.Error(err)
		}
	}
	isOver.Store(true)
	others.Wait()
	if wasReleased.Load() {
		t.Error("the lock was free between the confirmation and the decision")
	}
}

// TestObservationAfterWaiting shows that an object counts from when it is applied, not from when a goroutine began to
// wait for the lock. The test runs in real time, because virtual time stops while a goroutine waits for a lock.
func TestObservationAfterWaiting(t *testing.T) {
	t.Parallel()
	m := Member{Self: testSelf, Name: "default"}.JoinObject(t.Context(), nil, &testGate{})
	m.mu.Lock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.ObserveObject(map[string]any{
			"metadata": map[string]any{"name": "default", "resourceVersion": "1"},
			"status":   map[string]any{"him": map[string]any{}},
		})
	}()
	time.Sleep(50 * time.Millisecond)
	unlocked := time.Now()
	m.mu.Unlock()
	<-done
	if seen := m.state.peers.entries["him"].firstSeen; seen.Before(unlocked) {
		t.Errorf("the record was seen %s before the lock was free", unlocked.Sub(seen))
	}
}

// TestAlarmAfterDelay shows that the gate closes in time, even if the time of the last decision is old.
func TestAlarmAfterDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, began := &testGate{}, time.Now()
		m := Member{Self: testSelf, Name: "default", Acting: true}.JoinObject(t.Context(), nil, gate)
		time.Sleep(50 * time.Second)
		m.mu.Lock()
		m.state.confirmPublished(PeerRecord{Lifetime: time.Minute, LastSeen: began, Busy: ptr.To(1)}, began)
		m.setAlarm(began.Add(10 * time.Second))
		m.mu.Unlock()
		time.Sleep(time.Until(m.state.lostAt))
		synctest.Wait()
		if !gate.isClosed.Load() {
			t.Error("the gate is open after the record was lost")
		}
	})
}

// TestAnswerAfterSuspension shows that a process that was suspended until its record expired pauses before it acts
// again, because peers can act meanwhile.
func TestAnswerAfterSuspension(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := &testGate{}
		m := Member{Self: testSelf, Name: "default", Acting: true}.JoinObject(t.Context(),
			&answeringObject{isAlone: true},
			gate)
		if err := m.writeOwnRecord(t.Context()); err != nil || gate.isClosed.Load() {
			t.Fatalf("the operator does not act with its record: %v", err)
		}
		m.mu.Lock()
		m.decisionTimer.Stop() // a suspended process has no alarms
		m.mu.Unlock()
		time.Sleep(DefaultLifetime)
		if err := m.writeOwnRecord(t.Context()); err != nil || !gate.isClosed.Load() {
			t.Fatalf("the operator acts at once after its record expired: %v", err)
		}
		time.Sleep(settlingTime)
		synctest.Wait() // the alarm is at the same moment
		if gate.isClosed.Load() {
			t.Error("the operator does not act again")
		}
	})
}
