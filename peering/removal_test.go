package peering_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/peering"
)

// TestRemovedRecord shows that an operator whose record another client removes writes it again soon, and that its
// peers rely on the removed record until then: D-peering-gone.
func TestRemovedRecord(t *testing.T) {
	t.Parallel()
	for _, removed := range []string{"high", "low"} {
		t.Run(removed, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newSimulation(t)
				defer w.stopAll()
				low := w.startOperator("low", 1, 0)
				low.setAttemptDuration(30 * time.Second)
				time.Sleep(10 * time.Second)
				high := w.startOperator("high", 2, 0)
				acting := "low" // runs until 30 s, when the other one comes
				if removed == "high" {
					time.Sleep(30 * time.Second)
					high.setAttemptDuration(30 * time.Second)
					time.Sleep(5 * time.Second)
					w.requireOpen("the higher priority acts when the lower one is idle", "high")
					acting = "high"
				}
				for range 20 { // the town checks that no other operator begins
					w.removeRecord(acting)
					time.Sleep(700 * time.Millisecond)
				}
				time.Sleep(500 * time.Millisecond)
				if !w.hasRecord(acting) {
					t.Errorf("the record is not written again")
				}
				time.Sleep(25 * time.Second)
				w.requireOpen("the higher priority acts after the removals", "high")
			})
		})
	}
}

// TestRemovedRecordOfLostOperator shows that the removed record of an operator that is cut off still counts for its
// lifetime, for peers of any priority and with any clock: D-peering-gone.
func TestRemovedRecordOfLostOperator(t *testing.T) {
	t.Parallel()
	for _, clock := range []time.Duration{-100 * time.Second, 0, time.Minute} {
		for _, priority := range []int{1, 3} {
			t.Run(fmt.Sprint(clock, priority), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := newSimulation(t)
					defer w.stopAll()
					lost := w.startOperator("lost", 2, clock)
					time.Sleep(3 * time.Minute)
					lost.setDisconnected(true)
					w.startOperator("next", priority, 0)
					time.Sleep(2 * time.Second)
					w.removeRecord("lost")
					time.Sleep(30 * time.Second)
					w.requireOpen("the lost operator may act until its record ends", "lost")
					time.Sleep(peering.DefaultLifetime - 30*time.Second + 5*time.Second)
					w.requireOpen("the next operator acts at the end of the removed record", "next")
				})
			})
		}
	}
}

// TestRemovedRecordAtRest shows that the removed record of an idle operator does not count.
func TestRemovedRecordAtRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSimulation(t)
		defer w.stopAll()
		high := w.startOperator("high", 3, 0)
		w.startOperator("low", 1, 0)
		idle := w.startOperator("idle", 2, 0)
		time.Sleep(10 * time.Second)
		idle.setDisconnected(true)
		w.removeRecord("idle")
		high.stopGracefully()
		time.Sleep(time.Second)
		w.requireOpen("the lower priority acts although a record was removed", "low")
	})
}

// TestRemovedRecordOvertaken shows that the last state of a record counts even if the answer to a write overtakes
// earlier events. A leaving operator reports last that it is idle. Earlier states do not count.
func TestRemovedRecordOvertaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSimulation(t)
		defer w.stopAll()
		var gate gate
		api, err := memapi.NewClient(w.fixture.server.Connect(), w.fixture.resource)
		if err != nil {
			t.Fatal(err)
		}
		object := w.fixture.existingObject(api, "", "default")
		low := peering.Member{
			Self: peering.Self{Identity: "low", Priority: 1, Elects: true}, Name: "default",
		}.JoinObject(t.Context(), object, &gate)
		if err := low.Touch(t.Context()); err != nil {
			t.Fatal(err)
		}
		put := func(lifetime time.Duration, busy int) map[string]any {
			t.Helper()
			state, err := object.WriteRecord(t.Context(), "high", peering.PeerRecord{
				Priority: 2, Lifetime: lifetime, LastSeen: time.Now(), Runtime: "x", Busy: &busy,
			})
			if err != nil {
				t.Fatal(err)
			}
			return state
		}
		before, acting, resting, removed := put(time.Minute, 0), put(time.Minute, 1), put(time.Minute, 0), put(0, 0)
		for i, one := range []struct {
			state  map[string]any
			closed bool
		}{{acting, true}, {removed, true}, {before, true}, {resting, false}} {
			low.ObserveObject(one.state)
			if time.Sleep(2 * time.Second); gate.closed.Load() != one.closed {
				t.Errorf("after state %d, the gate is closed: %t", i, !one.closed)
			}
		}
		if err := low.Leave(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
