package chaos_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/peering"
)

// recordRemoved is the event that a record is gone that was good, although its operator has not left.
const recordRemoved = "removed"

// watchRecords has such events in the history. Clocks must not differ.
func (g *chaosRun) watchRecords(ctx context.Context) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("kopf.dev/v1")
	list.SetKind("ClusterKopfPeeringList")
	for records := map[string]peering.PeerRecord(nil); ctx.Err() == nil; {
		events, err := api.Watch(ctx, list.DeepCopy())
		if err != nil {
			return // the test has ended
		}
		for e := range events.ResultChan() {
			object, ok := e.Object.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			after, _ := peering.DecodeRecords(object.Object, time.Now())
			for identity, record := range records {
				if _, there := after[identity]; !there && g.isPremature(identity, record, time.Now()) {
					g.ledger.add(report{Kind: recordRemoved, By: identity, Text: "its record"})
				}
			}
			records = after
		}
	}
}

// isPremature reports whether a record must not be gone.
func (g *chaosRun) isPremature(identity string, record peering.PeerRecord, now time.Time) bool {
	for _, e := range g.ledger.history() {
		if e.By == identity && (e.Kind == stepLeave || e.Kind == stepKill) {
			return false
		}
	}
	return now.Before(record.ExpiresAt())
}

// figuresOfOverlaps counts overlaps by their reasons, and prints the first one of each. One without a reason fails.
func (g *chaosRun) figuresOfOverlaps(t *testing.T, a *callHistory) string {
	t.Helper()
	numbers := map[string]int{}
	for _, o := range a.overlaps(func(first, second *call) bool { return isKopf(first) || isKopf(second) }) {
		why := a.findReason(o)
		what := kind(o.first) + ", then " + kind(o.second) + ": " + why
		if numbers[what]++; numbers[what] > 1 && why != "" {
			continue
		}
		text := what + ", for " + (min(o.first.endedAt, o.second.endedAt) - o.second.startedAt).String() + ":\n" +
			a.excerpt(o, 2*g.lifetime)
		if why == "" {
			t.Errorf("nothing explains %s", text)
		} else {
			t.Log(text)
		}
	}
	return formatCounts(numbers)
}
