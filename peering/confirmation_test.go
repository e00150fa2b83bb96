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

// hurried is a peering object that somebody else changes, too: the watch tells of that before the answer is read.
type hurried struct{ member *peering.Membership }

func (h *hurried) PatchStatus(ctx context.Context, status map[string]any, _ string) (map[string]any, error) {
	version := func(number int) map[string]any {
		return map[string]any{
			"metadata": map[string]any{"name": "default", "resourceVersion": strconv.Itoa(number)}, "status": status,
		}
	}
	h.member.Observe(version(2))
	return version(1), nil
}

// What was heard before the answer counts when the record is known to be there: nobody may tell of it again.
func TestNewsBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		object, gate := &hurried{}, &door{}
		self := peering.Self{Identity: "me"}
		object.member = peering.Member{Self: self, Name: "default"}.Join(t.Context(), object, gate)
		if err := object.member.Touch(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if gate.closed.Load() {
			t.Error("there are no peers, and it does not act")
		}
		if !object.member.IsAnswered() {
			t.Error("it has no answer")
		}
	})
}

// door is a gate.
type door struct{ closed atomic.Bool }

// Set closes or opens it.
func (d *door) Set(closed bool) { d.closed.Store(closed) }

// AllowWritesUntil does nothing.
func (d *door) AllowWritesUntil(time.Time) {}
