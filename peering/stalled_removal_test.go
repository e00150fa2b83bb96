package peering_test

import (
	"context"
	"maps"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/peering"
)

// stalledObject is a peering object that does not answer the removal of records.
type stalledObject struct {
	slowObject

	removals, running atomic.Int64
	areParallel       atomic.Bool
}

func (s *stalledObject) PatchStatus(
	ctx context.Context, status map[string]any, resourceVersion string,
) (map[string]any, error) {
	if resourceVersion == "" {
		return s.slowObject.PatchStatus(ctx, status, resourceVersion)
	}
	s.removals.Add(1)
	if s.running.Add(1) > 1 {
		s.areParallel.Store(true)
	}
	defer s.running.Add(-1)
	<-ctx.Done()
	time.Sleep(time.Millisecond) // to end the request
	return nil, ctx.Err()
}

// writeCount returns how often the object has changed.
func (s *stalledObject) writeCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// changedObject returns the next version of the object, with these records and an expired one.
func (s *stalledObject) changedObject(records map[string]any) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.others["expired"] = map[string]any{"lifetime": int64(1), "lastseen": "2000-01-01T00:00:00Z"}
	s.version++
	all := maps.Clone(s.others)
	maps.Copy(all, records)
	return map[string]any{
		"metadata": map[string]any{"name": "default", "resourceVersion": strconv.Itoa(s.version)}, "status": all,
	}
}

// TestStalledRemoval shows that a removal of expired records that gets no answer does not delay writes of the own
// record: D-peering-gone, D-peering-fence.
func TestStalledRemoval(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason    string
		jitter    func() time.Duration
		isRemoved bool // another client removes the own record
		within    time.Duration
	}{
		"Restored": {"a missing record is written again at once", nil, true, time.Second},
		"Renewed": {"a record that ends soon is renewed in time",
			func() time.Duration { return 5 * time.Second }, false, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				object, gate := &stalledObject{slowObject: slowObject{others: map[string]any{}}}, &fencedGate{}
				member := peering.Member{
					Self: peering.Self{Identity: "me"}, Name: "default", Jitter: tc.jitter,
				}.JoinObject(t.Context(), object, gate)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); member.Run(ctx) }()
				time.Sleep(54 * time.Second)
				own := map[string]any{"me": map[string]any{"lifetime": int64(60), "busy": int64(1)}}
				member.ObserveObject(object.changedObject(own))
				synctest.Wait()
				if object.running.Load() != 1 {
					t.Fatal("an expired record must be removed")
				}
				if tc.isRemoved {
					member.ObserveObject(object.changedObject(nil))
				}
				before := object.writeCount()
				time.Sleep(tc.within)
				synctest.Wait()
				if object.writeCount() == before || gate.closed.Load() {
					t.Errorf("%s: %d writes in %s; closed %t", tc.reason, object.writeCount()-before, tc.within,
						gate.closed.Load())
				}
				time.Sleep(time.Minute)
				if object.removals.Load() < 2 || object.areParallel.Load() {
					t.Errorf("removals must be repeated one by one: got %d, at once %t", object.removals.Load(),
						object.areParallel.Load())
				}
				member.ObserveObject(object.changedObject(own))
				if time.Sleep(3 * time.Second); object.running.Load() != 1 {
					t.Fatal("an expired record must still be removed")
				}
				cancel()
				if <-done; object.running.Load() > 0 {
					t.Error("Run returned before the removal")
				}
			})
		})
	}
}
