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

// registry is a peering object with the records of others, whose answers take some time, or fail.
type registry struct {
	lag     time.Duration
	failure error

	mu      sync.Mutex
	others  map[string]any
	version int
}

// edit replaces the record of another operator.
func (r *registry) edit(name string, record map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.others[name] = record
}

func (r *registry) PatchStatus(_ context.Context, status map[string]any, _ string) (map[string]any, error) {
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

// barrier is a gate that notes the end of the permission to write.
type barrier struct {
	closed atomic.Bool
	end    atomic.Pointer[time.Time]
}

// Set closes or opens it.
func (b *barrier) Set(closed bool) { b.closed.Store(closed) }

// AllowWritesUntil notes the end.
func (b *barrier) AllowWritesUntil(end time.Time) { b.end.Store(&end) }

// The permission to write ends two seconds before the record does, but not before half of its lifetime, counted from
// when the last record was sent that was confirmed; and the gate closes then: D-peering-fence.
func TestFenceBeforeTheEndOfTheRecord(t *testing.T) {
	t.Parallel()
	for lifetime, want := range map[time.Duration]time.Duration{
		time.Minute: 58 * time.Second, 10 * time.Second: 8 * time.Second, 3 * time.Second: 1500 * time.Millisecond,
	} {
		t.Run(lifetime.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				object, gate, began := &registry{lag: 200 * time.Millisecond}, &barrier{}, time.Now()
				member := peering.Member{
					Self: peering.Self{Identity: "me"}, Name: "default", Lifetime: lifetime,
				}.Join(t.Context(), object, gate)
				if err := member.Touch(t.Context()); err != nil {
					t.Fatal(err)
				}
				object.failure = errors.New("nobody answers")
				time.Sleep(time.Second)
				if err := member.Touch(t.Context()); err == nil {
					t.Error("it was confirmed")
				}
				if got := gate.end.Load().Sub(began); got != want || gate.closed.Load() {
					t.Errorf("it may write for %s, want %s; closed %t", got, want, gate.closed.Load())
				}
				time.Sleep(time.Until(began.Add(want)))
				synctest.Wait()
				if !gate.closed.Load() {
					t.Error("the gate is open beyond that")
				}
			})
		})
	}
}

// A record of ours that has expired is believed until it has not changed for its lifetime here, unless it has expired
// for longer than clocks may differ; one of Kopf's is believed its time: D-peering-clock.
func TestExpiredRecords(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason        string
		runtime       any
		expired, skew time.Duration
		waits         time.Duration
	}{
		"Ours":      {"its clock may be behind", "x", 30 * time.Second, 0, time.Minute},
		"LongAgo":   {"no clock is so far behind", "x", 3 * time.Minute, 0, 0},
		"InBetween": {"it is given the rest of the two minutes", "x", 90 * time.Second, 0, 30 * time.Second},
		"BySetting": {"clocks are said to be better", "x", 30 * time.Second, 10 * time.Second, 0},
		"NoSkew":    {"clocks are said to be equal", "x", time.Second, -1, 0},
		"Kopfs":     {"it is dead for its own kind", nil, time.Second, 0, 0},
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
				object, gate := &registry{others: map[string]any{"him": him}}, &barrier{}
				member := peering.Member{
					Self: peering.Self{Identity: "me"}, Name: "default", Skew: tc.skew,
					Lifetime: time.Hour,
				}.Join(t.Context(), object, gate)
				if err := member.Touch(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(max(0, tc.waits-2*time.Second))
				if tc.waits > 0 && !gate.closed.Load() {
					t.Errorf("%s: it acts already", tc.reason)
				}
				time.Sleep(5 * time.Second)
				if gate.closed.Load() {
					t.Errorf("%s: it does not act", tc.reason)
				}
			})
		})
	}
}

// A record without a time counts from when it was first seen, unless something else in it changes; by Kopf's rules, it
// is of now whenever it is read: D-peering-lastseen.
func TestRecordsWithoutTime(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ rules, edited, ends bool }{
		"Ours": {false, false, true}, "Edited": {false, true, true}, "Kopfs": {true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				him := map[string]any{"priority": int64(9), "lifetime": int64(60)}
				object, gate := &registry{others: map[string]any{"him": him}}, &barrier{}
				member := peering.Member{
					Self: peering.Self{Identity: "me"}, Name: "default", KopfRules: tc.rules,
				}.Join(t.Context(), object, gate)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); member.Run(ctx) }()
				defer func() { cancel(); <-done }()
				time.Sleep(30 * time.Second)
				if tc.edited {
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
				if time.Sleep(time.Hour); gate.closed.Load() == tc.ends {
					t.Errorf("an hour later, the gate is closed: %t", gate.closed.Load())
				}
			})
		})
	}
}
