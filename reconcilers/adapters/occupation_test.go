package adapters_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// TestHolders shows that Holders reports the handlers that hold slots, for how long, and for how long they exceed their
// timeouts.
func TestHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gauged []string
		o := &adapters.Occupation{Gauge: func(handler string, more float64) {
			gauged = append(gauged, fmt.Sprintf("%s %+.0f", handler, more))
		}}
		enter := func(id string, timeout *time.Duration, before time.Duration) *execution.Attempt {
			a := attemptOf(nil)
			a.Call.Handler.ID, a.Limits.Policy.Timeout, a.Limits.Runtime = id, timeout, before
			o.Enter(a)
			return a
		}
		if got := o.SlotHolders(); got != nil {
			t.Errorf("without attempts, there must be no holders: %v", got)
		}
		enter("b", nil, 0)
		enter("c", nil, 0)
		for range 3 { // in any order
			enter("many", nil, 0)
		}
		first := enter("late", ptr.To(time.Minute), 30*time.Second)
		time.Sleep(time.Minute)
		enter("late", ptr.To(time.Hour), 2*time.Hour)
		time.Sleep(time.Minute)
		want := []adapters.SlotHolder{
			{Handler: "many", Objects: 3, LongestHold: 2 * time.Minute},
			{Handler: "late", Objects: 2, LongestHold: 2 * time.Minute, Overdue: 90 * time.Second},
			{Handler: "b", Objects: 1, LongestHold: 2 * time.Minute},
			{Handler: "c", Objects: 1, LongestHold: 2 * time.Minute},
		}
		for range 50 { // as the order of maps is random
			if d := cmp.Diff(want, o.SlotHolders()); d != "" {
				t.Fatalf("the time before this attempt must count for the timeout, -want, +got:\n%s", d)
			}
		}
		o.Leave(first)
		moves := []string{"b +1", "c +1", "many +1", "many +1", "many +1", "late +1", "late +1", "late -1"}
		if d := cmp.Diff(moves, gauged); d != "" {
			t.Errorf("the gauge, -want, +got:\n%s", d)
		}
		if got := o.SlotHolders(); len(got) != 4 || got[3].Handler != "late" || got[3].Overdue != time.Minute {
			t.Errorf("want the other attempt to be late since its start: %+v", got)
		}
	})
}

func TestHoldersWithoutAGauge(t *testing.T) {
	o, a := &adapters.Occupation{}, attemptOf(nil)
	o.Enter(a)
	if got := o.SlotHolders(); len(got) != 1 {
		t.Errorf("got %v", got)
	}
	if o.Leave(a); o.SlotHolders() != nil {
		t.Error("an attempt that has left must not be a holder")
	}
}
