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
	q := NewQueue(NewPlaces(1, Observer{}), workqueue.DefaultTypedControllerRateLimiter[Request]())
	t.Cleanup(q.ShutDown)
	return q
}

func asking(name string) Request {
	return Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: name}}
}

// Two requests may have the same hash: here all have.
func TestEntriesThatCollide(t *testing.T) {
	tests := map[string]struct {
		reason string
		leave  []string // in this order, of a, b, c and d
	}{
		"OldestLeavesFirst": {reason: "the last of the chain goes", leave: []string{"a", "b", "c", "d"}},
		"NewestLeavesFirst": {reason: "the first of the chain goes", leave: []string{"d", "a", "b", "c"}},
		"MiddleLeavesFirst": {reason: "those on both sides of it stay", leave: []string{"b", "c", "a", "d"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			q := waitingQueue(t)
			q.entries.hash = func(Request) uint64 { return 7 }
			for _, name := range []string{"a", "b", "c", "d"} {
				q.AddAfter(asking(name), time.Hour)
			}
			for _, name := range tc.leave {
				q.Add(asking(name)) // merged with what is delayed: none is served twice
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
				t.Errorf("%d entries are left", left)
			}
		})
	}
}

func TestEntriesTakeLittleRoom(t *testing.T) {
	if size := unsafe.Sizeof(entry{}); size > 96 {
		t.Errorf("an entry takes %d bytes, which is more than a size of 96: all objects may wait at once", size)
	}
	q := waitingQueue(t)
	for i := range 2 * plenty {
		q.Add(asking(fmt.Sprint(i)))
	}
	for q.Len() > 0 {
		r, _ := q.Get()
		q.Release(r)
	}
	if q.entries.byHash != nil {
		t.Error("the room of those that are gone is kept for good")
	}
}

func TestEndlessDelay(t *testing.T) {
	q := waitingQueue(t)
	q.AddAfter(asking("never"), math.MaxInt64)
	q.AddAfter(asking("sooner"), time.Hour)
	if first := q.delayed[0].request.Name; first != "sooner" {
		t.Errorf("%q is due first: the end of an endless delay has passed zero", first)
	}
}
