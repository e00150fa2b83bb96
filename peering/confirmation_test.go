package peering_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/peering"
)

// racingObject is a peering object that another client changes, too: the watch reports its change before the answer
// arrives.
type racingObject struct{ member *peering.Membership }

func (h *racingObject) PatchStatus(ctx context.Context, status map[string]any, _ string) (map[string]any, error) {
	version := func(number int) map[string]any {
		return map[string]any{
			"metadata": map[string]any{"name": "default", "resourceVersion": strconv.Itoa(number)}, "status": status,
		}
	}
	h.member.ObserveObject(version(2))
	return version(1), nil
}

// TestEventBeforeTheAnswer shows that an event before the answer counts as soon as the record is confirmed, because
// the event is not repeated.
func TestEventBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		object, gate := &racingObject{}, &recordingGate{}
		self := peering.Self{Identity: "me"}
		object.member = peering.Member{Self: self, Name: "default"}.JoinObject(t.Context(), object, gate)
		if err := object.member.Touch(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if gate.closed.Load() {
			t.Error("the operator has no peers and must act")
		}
		if !object.member.IsAnswered() {
			t.Error("the membership must count as answered")
		}
	})
}

// recordingGate is a gate that records whether it is closed.
type recordingGate struct{ closed atomic.Bool }

// Set records whether the gate is closed.
func (d *recordingGate) Set(closed bool) { d.closed.Store(closed) }

// AllowWritesUntil does nothing.
func (d *recordingGate) AllowWritesUntil(time.Time) {}
