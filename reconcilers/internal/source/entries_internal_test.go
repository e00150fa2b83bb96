package source

import (
	"fmt"
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

func waitingQueue(t *testing.T) *PriorityQueue {
	t.Helper()
	q := NewQueue(NewSlots(1, SlotsObserver{}), workqueue.DefaultTypedControllerRateLimiter[Request]())
	t.Cleanup(q.ShutDown)
	return q
}

func testRequest(name string) Request {
	return Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: name}}
}

// TestEntriesThatCollide shows that requests with equal hashes are kept apart. Here all hashes are equal.
func TestEntriesThatCollide(t *testing.T) {
	tests := map[string]struct {
		reason string
		leave  []string // in this order, of a, b, c and d
	}{
		"OldestLeavesFirst": {reason: "the last entry of a chain can be removed first",
			leave: []string{"a", "b", "c", "d"}},
		"NewestLeavesFirst": {reason: "the first entry of a chain can be removed first",
			leave: []string{"d", "a", "b", "c"}},
		"MiddleLeavesFirst": {reason: "a middle entry of a chain can be removed first",
			leave: []string{"b", "c", "a", "d"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			q := waitingQueue(t)
			q.entries.hash = func(Request) uint64 { return 7 }
			for _, name := range []string{"a", "b", "c", "d"} {
				q.AddAfter(testRequest(name), time.Hour)
			}
			for _, name := range tc.leave {
				q.Add(testRequest(name)) // replaces the delayed addition: none is served twice
			}
			var got []string
			for q.Len() > 0 {
				r, _ := q.Get()
				got = append(got, r.Name)
				q.Release(r)
			}
			if d := cmp.Diff(tc.leave, got); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
			if left := len(q.entries.byHash); left > 0 {
				t.Errorf("%d entries remain", left)
			}
		})
	}
}

// TestEntriesTakeLittleRoom limits the memory of queued requests, as all objects may be queued at once.
func TestEntriesTakeLittleRoom(t *testing.T) {
	if size := unsafe.Sizeof(entry{}); size > 96 {
		t.Errorf("an entry takes %d bytes, want at most 96, as all objects may be queued at once", size)
	}
	q := waitingQueue(t)
	for i := range 2 * shrinkThreshold {
		q.Add(testRequest(fmt.Sprint(i)))
	}
	for q.Len() > 0 {
		r, _ := q.Get()
		q.Release(r)
	}
	if q.entries.byHash != nil {
		t.Error("the memory of removed entries is kept")
	}
}

// TestEndlessDelay shows that an endless delay does not overflow.
func TestEndlessDelay(t *testing.T) {
	q := waitingQueue(t)
	q.AddAfter(testRequest("never"), math.MaxInt64)
	q.AddAfter(testRequest("sooner"), time.Hour)
	if first := q.delayed[0].request.Name; first != "sooner" {
		t.Errorf("%q is due first: an endless delay overflows", first)
	}
}
