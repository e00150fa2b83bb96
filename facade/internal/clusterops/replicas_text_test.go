package clusterops_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterops"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
)

// TestText shows the table of a group with all states of replicas, and the line about ranges without an owner.
func TestReplicas(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := clusterops.ReplicaReport{Operator: "op", Lease: "op-1", At: now, Groups: []clusterops.ReplicaGroup{{
		Namespace: "prod", Status: sharding.Status{
			Count: 8, Unowned: []sharding.Unowned{{Index: 3}, {Index: 6}, {Index: 7}}, Replicas: []sharding.Replica{
				{Identity: "a", Count: 8, Ranges: []int{0, 1, 2, 5}, Load: sharding.Load{Objects: 10, Backlog: 2},
					Renewed: now.Add(-3 * time.Second)},
				{Identity: "b\x1b[2J", Count: 8, Ranges: []int{4}, Leaving: true, Renewed: now.Add(time.Minute)},
				{Identity: "c", Count: 16, Renewed: now},
				{Identity: "d", Count: 8, Renewed: now},
				{Identity: "f", Count: 8, Paused: true},
				{Identity: "e", Count: 8, Ranges: []int{3}, Silent: true},
			},
		},
	}, {Namespace: "test", Status: sharding.Status{Elected: "x"}}}}
	const want = `Operator op: 6 replicas share 8 ranges by Leases of prod/op-1.

REPLICA  RANGES     OBJECTS  BACKLOG  RENEWED  STATE
a        0-2,5 (4)  10       2        3s ago   handles
b` + "\uFFFD" + `[2J    4 (1)      0        0        0s ago   leaving
c        none       0        0        0s ago   waits: has another layout, of 16 ranges
d        none       0        0        0s ago   waits for a range
f        none       0        0        never    paused
e        3 (1)      0        0        never    does not run

Ranges without an owner, whose objects are not handled: 3,6-7 (3 of 8)

Operator op: 0 replicas share no ranges now by Leases of test/op-1.
x handles all objects until it ends: it is an elected leader.
`
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("the text differs:\n%s\n%s", diff, &text)
	}
	if err := r.Err(); err != nil {
		t.Errorf("a live replica in each group: %v", err)
	}
	var output strings.Builder
	if err := r.WriteJSON(&output); err != nil {
		t.Fatal(err)
	}
	var read clusterops.ReplicaReport
	if err := json.Unmarshal([]byte(output.String()), &read); err != nil || !cmp.Equal(read, r) {
		t.Errorf("the JSON differs: %v\n%s", err, cmp.Diff(r, read))
	}
	r.Groups[1].Elected = ""
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "in namespace test") {
		t.Errorf("a group without live replicas is an error, got %v", err)
	}
}
