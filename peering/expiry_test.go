package peering_test

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/peering"
)

// slowObject is a peering object with the records of others. Its answers take some time, or fail.
type slowObject struct {
	lag     time.Duration
	failure error

	mu      sync.Mutex
	others  map[string]any
	version int
}

// edit replaces the record of another operator.
func (r *slowObject) edit(name string, record map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.others[name] = record
}

func (r *slowObject) PatchStatus(_ context.Context, status map[string]any, _ string) (map[string]any, error) {
	time.Sleep(r.lag)
	if r.failure != nil {
		return nil, r.failure
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version++
	all := maps.Clone(status)
	maps.Copy(all, r.others)
	return map[string]any{
		"metadata": map[string]any{"name": "default", "resourceVersion": strconv.Itoa(r.version)}, "status": all,
	}, nil
}

// fencedGate is a gate that records the end of the permission to write.
type fencedGate struct {
	closed        atomic.Bool
	writableUntil atomic.Pointer[time.Time]
}

// Set records whether the gate is closed.
func (b *fencedGate) Set(closed bool) { b.closed.Store(closed) }

// AllowWritesUntil records the end.
func (b *fencedGate) AllowWritesUntil(end time.Time) { b.writableUntil.Store(&end) }

// TestFenceBeforeTheEndOfTheRecord shows that the gate closes and the permission to write ends two seconds before the
// record, but not before half of its lifetime. The lifetime counts from when the last confirmed record was sent:
// D-peering-fence.
func TestFenceBeforeTheEndOfTheRecord(t *testing.T) {
	t.Parallel()
	for lifetime, want := range map[time.Duration]time.Duration{
		time.Minute: 58 * time.Second, 10 * time.Second: 8 * time.Second, 3 * time.Second: 1500 * time.Millisecond,
	} {
		t.Run(lifetime.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				object, gate, began := &slowObject{lag: 200 * time.Millisecond}, &fencedGate{}, time.Now()
				member := peering.Member{
					Self: peering.Self{Identity: "me"}, Name: "default", Lifetime: lifetime,
				}.JoinObject(t.Context(), object, gate)
				if err := member.Touch(t.Context()); err != nil {
					t.Fatal(err)
				}
				object.failure = errors.New("nobody answers")
				time.Sleep(time.Second)
				if err := member.Touch(t.Context()); err == nil {
					t.Error("the second record must not be confirmed")
				}
				if got := gate.writableUntil.Load().Sub(began); got != want || gate.closed.Load() {
					t.Errorf("the operator may write for %s, want %s; closed %t", got, want, gate.closed.Load())
				}
				time.Sleep(time.Until(began.Add(want)))
				synctest.Wait()
				if !gate.closed.Load() {
					t.Error("the gate is open after the end of the permission")
				}
			})
		})
	}
}

// TestExpiredRecords shows that an expired record of ours counts until it has not changed for its lifetime, unless it
// expired longer ago than clocks may differ. A record of Kopf counts until its own end: D-peering-clock.
func TestExpiredRecords(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason        string
		runtime       any
		expired, skew time.Duration
		wantDelay     time.Duration
	}{
		"Ours": {"a recently expired record of ours still counts for its lifetime",
			"x", 30 * time.Second, 0, time.Minute},
		"LongAgo": {"a record that expired long ago does not count", "x", 3 * time.Minute, 0, 0},
		"InBetween": {"a record that expired within the skew counts until the skew is over",
			"x", 90 * time.Second, 0, 30 * time.Second},
		"BySetting": {"a smaller skew ends the record", "x", 30 * time.Second, 10 * time.Second, 0},
		"NoSkew":    {"without skew, an expired record does not count", "x", time.Second, -1, 0},
		"Kopfs":     {"an expired record of Kopf does not count", nil, time.Second, 0, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				him := map[string]any{
					"priority": int64(9), "lifetime": int64(60),
					"lastseen": time.Now().Add(-time.Minute - tc.expired).UTC().Format(time.RFC3339),
				}
				if tc.runtime != nil {
					him["runtime"], him["busy"] = tc.runtime, int64(1)
				}
				object, gate := &slowObject{others: map[string]any{"him": him}}, &fencedGate{}
				member := peering.Member{
					Self: peering.Self{Identity: "me"}, Name: "default", Skew: tc.skew,
					Lifetime: time.Hour,
				}.JoinObject(t.Context(), object, gate)
				if err := member.Touch(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(max(0, tc.wantDelay-2*time.Second))
				if tc.wantDelay > 0 && !gate.closed.Load() {
					t.Errorf("%s: the operator acts too early", tc.reason)
				}
				time.Sleep(5 * time.Second)
				if gate.closed.Load() {
					t.Errorf("%s: the operator does not act", tc.reason)
				}
			})
		})
	}
}

// TestRecordsWithoutTime shows that a record without a time counts from when it was first seen, unless something else
// in it changes. By Kopf's rules, it counts as new whenever it is read: D-peering-lastseen.
func TestRecordsWithoutTime(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ kopfRules, isEdited, wantOpen bool }{
		"Ours": {false, false, true}, "Edited": {false, true, true}, "Kopfs": {true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				him := map[string]any{"priority": int64(9), "lifetime": int64(60)}
				object, gate := &slowObject{others: map[string]any{"him": him}}, &fencedGate{}
				member := peering.Member{
					Self: peering.Self{Identity: "me"}, Name: "default", KopfRules: tc.kopfRules,
				}.JoinObject(t.Context(), object, gate)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); member.Run(ctx) }()
				defer func() { cancel(); <-done }()
				time.Sleep(30 * time.Second)
				if tc.isEdited {
					object.edit("him", map[string]any{"priority": int64(10), "lifetime": int64(60)})
					if err := member.Touch(ctx); err != nil {
						t.Fatal(err)
					}
					time.Sleep(30 * time.Second)
				}
				time.Sleep(28 * time.Second)
				if !gate.closed.Load() {
					t.Error("the operator acts before the record has ended")
				}
				if time.Sleep(time.Hour); gate.closed.Load() == tc.wantOpen {
					t.Errorf("an hour later, the gate is closed: %t", gate.closed.Load())
				}
			})
		})
	}
}

// TestAnswerAfterTheEndOfTheRecord shows that an answer does not allow writes if the record has ended meanwhile: its
// peers may act already.
func TestAnswerAfterTheEndOfTheRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		object, gate := &slowObject{lag: time.Minute}, &fencedGate{}
		member := peering.Member{Self: peering.Self{Identity: "me"}, Name: "default", Lifetime: time.Minute}
		joined := member.JoinObject(t.Context(), object, gate)
		if err := joined.Touch(t.Context()); err != nil {
			t.Fatal(err)
		}
		if until := gate.writableUntil.Load(); !gate.closed.Load() || until != nil {
			t.Errorf("the record has ended: closed: %t, writes until %v", gate.closed.Load(), until)
		}
		object.lag = 0
		if err := joined.Touch(t.Context()); err != nil {
			t.Fatal(err)
		}
		until := gate.writableUntil.Load()
		if until == nil || until.After(time.Now().Add(time.Minute)) || !until.After(time.Now()) {
			t.Errorf("a valid record must allow writes until it ends, got %v", until)
		}
	})
}
