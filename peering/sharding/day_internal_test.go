package sharding

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The bytes of a Lease in a list, with the fields that the API server adds.
var (
	rangeBytes   = sizeOf(write{name: "my-operator.example.org-684888c0-range-1000-123"})
	replicaBytes = sizeOf(write{name: "my-operator.example.org-684888c0-replica-0e51c77ac4c9",
		annotations: map[string]string{shardsAnnotation: "1000", loadAnnotation: `{"objects":20000,"backlog":12}`}})
)

// sizeOf returns the size of the Lease that a write makes.
func sizeOf(w write) int {
	w.holder, w.seconds = "my-operator-5d8f7c9b6d-x2x7k_1a2b3c4d", int(leaseDuration/time.Second)
	created := metav1.Now()
	object := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name: w.name, Namespace: "my-operator", UID: "6a3c1f8e-0b0e-4a53-9a53-1c1d8a4d5b7e",
		ResourceVersion:   "123456789",
		CreationTimestamp: created, ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "my-operator", Operation: metav1.ManagedFieldsOperationUpdate, Time: &created,
			APIVersion: "coordination.k8s.io/v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(
				`{"f:metadata":{"f:labels":{".":{},"f:` + groupLabel + `":{}}},"f:spec":{"f:acquireTime":{},` +
					`"f:holderIdentity":{},"f:leaseDurationSeconds":{},"f:leaseTransitions":{},"f:renewTime":{}}}`)},
		}},
	}}
	w.apply(object, digest("my-operator.example.org-684888c0", 8))
	return object.Size() // as protobuf
}

// replaceReplicas lets replicas die, end and start at random: each lives for this long on average.
func (s *simulation) replaceReplicas(wanted int, lifetime time.Duration) {
	s.after(s.delay(2*lifetime/time.Duration(wanted)), func() {
		if len(s.replicas) > wanted/2 {
			r := s.replicas[s.dice.IntN(len(s.replicas))]
			if s.dice.IntN(2) == 0 {
				s.kill(r)
			} else {
				s.end(r)
			}
		}
		// Replacements come a short time later. Sometimes there is one more, or one less.
		missing := wanted - len(s.replicas) + s.dice.IntN(3) - 1
		for range missing {
			s.after(s.delay(time.Minute), func() { s.start() })
		}
		s.replaceReplicas(wanted, lifetime)
	})
}

// TestSimulatedReplicas shows for an hour of 20 replicas, or a day of 100, which die, end and start at random, that
// never two gates of a range are open, and how long a range is without an owner. It prints the costs.
func TestSimulatedReplicas(t *testing.T) {
	replicas, shards, duration, lifetime := 20, 64, time.Hour, 20*time.Minute
	if os.Getenv("SHARDS_DAY") != "" {
		replicas, shards, duration, lifetime = 100, 1000, 24*time.Hour, 4*time.Hour
	}
	seed := rand.Uint64()
	s := newSimulation(t, seed, shards)
	for range replicas {
		s.start()
	}
	s.run(2 * time.Minute)
	s.moves, s.least, s.lists, s.writes, s.listedBytes = 0, 0, 0, 0, 0
	served := s.served[shards]
	for i := range served {
		served[i].gap, served[i].sum = 0, 0
	}
	s.replaceReplicas(replicas, lifetime)
	began := time.Now()
	s.run(duration)
	longest, sum, most := time.Duration(0), time.Duration(0), time.Duration(0)
	for i := range served {
		longest, sum, most = max(longest, served[i].gap), sum+served[i].sum, max(most, served[i].sum)
	}
	seconds := duration.Seconds()
	t.Logf("seed %d: %d replicas at the end, %d ranges, %s in %s", seed, len(s.replicas), shards, duration,
		time.Since(began).Round(time.Millisecond))
	t.Logf("%d movements, the minimum is %d", s.moves, s.least)
	t.Logf("without an owner: at most %s at a time; %.0f s in total, at most %s of one range", longest, sum.Seconds(),
		most)
	t.Logf("a range has a Lease of %d bytes, a replica one of %d bytes", rangeBytes, replicaBytes)
	t.Logf("%.1f writes and %.1f lists of Leases per second, %.1f MB per second", float64(s.writes)/seconds,
		float64(s.lists)/seconds, float64(s.listedBytes)/seconds/1e6)
	if s.overlaps > 0 {
		t.Errorf("two gates of one range were open at once, %d times", s.overlaps)
	}
	if longest > leaseDuration+5*time.Second {
		t.Errorf("a range was without an owner for %s, want at most a lease duration and 5s", longest)
	}
	for i := range served {
		if s.now.Sub(served[i].until) > 20*time.Second {
			t.Errorf("range %d is not served at the end", i)
		}
	}
}
