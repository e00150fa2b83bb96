package forgery_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/test/storms"
)

const (
	moves = 5
	// maxWritesPerMove limits the operator's writes after one write by another client: for each attempt a checkpoint to
	// both URLs, and as many to open and to close.
	maxWritesPerMove = 2 * (attempts + 2)
	// longestLine is how many bytes a line of the log may have.
	longestLine = 4096
	// dearer is how much more a forgery may cost than an honest annotation of the same size: by allocated bytes, and by
	// CPU, which others on the machine disturb.
	maxBytesRatio, maxCPURatio = 8, 25
)

// TestForgery is about one object whose memory anybody may write, and another one.
func TestForgery(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	for _, m := range storageVariants {
		for seed := range storms.Count(t, 1, 1) {
			for _, rights := range []string{"metadata", "status"} {
				t.Run(fmt.Sprint(m.name, seed, rights), func(t *testing.T) {
					honest := cost(func() int { return play(t, m, seed, rights, false) })
					forged := cost(func() int { return play(t, m, seed, rights, true) })
					if forged.bytes > maxBytesRatio*honest.bytes {
						t.Errorf(
							"a write allocates %d bytes with forgeries, %d with honest annotations of their size",
							forged.bytes, honest.bytes,
						)
					}
					if forged.cpu > maxCPURatio*max(honest.cpu, time.Millisecond) {
						t.Errorf(
							"a write takes %s of CPU with forgeries, %s with honest annotations of their size",
							forged.cpu, honest.cpu,
						)
					}
				})
			}
		}
	}
}

// play is one run, and gives how many writes there were to the object, of all. The honest twin has the same moves, with
// data of the same size in unused places.
func play(t *testing.T, m storageVariant, seed uint64, rights string, forging bool) (writes int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, rights == "status" || seed%2 == 0)
		stop := w.startOperator(m)
		r := forgeryRun{harness: w, storage: m, rights: rights, isForging: forging,
			forger: forger{rand.New(rand.NewPCG(seed, 1))}}
		r.begin()
		for range moves {
			r.move()
		}
		r.requireIdle()
		stop()
		r.deleteObjects()
		stop = w.startOperator(m)
		time.Sleep(10 * time.Minute)
		r.requireOutcome()
		stop()
		writes = r.acceptedMoves + w.countWrites("forged")
	})
	return writes
}

type forgeryRun struct {
	*harness
	forger

	storage       storageVariant
	rights        string
	isForging     bool
	acceptedMoves int // moves that the server took
}

// begin has the objects met in one of three states: handled, in the middle, or new.
func (r *forgeryRun) begin() {
	r.create("forged")
	r.create("honest")
	if r.IntN(2) == 0 {
		r.patch("forged", map[string]any{"metadata": map[string]any{"labels": map[string]any{"fails": "yes"}}}, false)
	}
	time.Sleep([]time.Duration{0, time.Second, time.Minute}[r.IntN(3)])
}

func (r *forgeryRun) move() {
	time.Sleep(time.Duration(r.IntN(3)) * 7 * time.Second)
	if r.IntN(3) == 0 {
		r.countAccepted(r.patch("forged", map[string]any{"spec": map[string]any{"value": fmt.Sprint("v", r.IntN(3))}},
			false))
		return
	}
	r.forge()
}

func (r *forgeryRun) forge() {
	inStatus := r.rights == "status" || r.IntN(3) == 0
	patch := r.forgery(inStatus)
	if !r.isForging {
		patch = harmlessPatch(patch, inStatus)
	}
	r.countAccepted(r.patch("forged", patch, inStatus && r.rights == "status"))
}

func (r *forgeryRun) forgery(inStatus bool) map[string]any {
	if inStatus {
		return r.status()
	}
	return r.annotations(r.storage.prefix)
}

func (r *forgeryRun) countAccepted(taken bool) {
	if taken {
		r.acceptedMoves++
	}
}

// harmlessPatch says as much elsewhere, in as many places.
func harmlessPatch(patch map[string]any, inStatus bool) map[string]any {
	if inStatus {
		return map[string]any{"status": map[string]any{"somebody": fmt.Sprint(patch)}}
	}
	notes := map[string]any{}
	annotations, _, _ := unstructured.NestedMap(patch, "metadata", "annotations")
	for key, value := range annotations {
		notes["somebody.example.org/"+strings.ReplaceAll(key, "/", ".")] = fmt.Sprint(value)
	}
	return map[string]any{"metadata": map[string]any{"annotations": notes}}
}

// requireIdle requires that no writes continue without a change.
func (r *forgeryRun) requireIdle() {
	r.patch("honest", map[string]any{"spec": map[string]any{"value": "y"}}, false)
	time.Sleep(10 * time.Minute)
	before := r.countWrites("forged")
	time.Sleep(30 * time.Minute)
	if after := r.countWrites("forged"); after > before {
		r.t.Errorf("the idle object is written to %d times in half an hour", after-before)
	}
}

// deleteObjects deletes both objects, with last forgeries while the operator is down.
func (r *forgeryRun) deleteObjects() {
	for range moves {
		r.forge()
	}
	if r.isForging && r.rights == "status" {
		r.countAccepted(r.patch("forged", r.endedRecord("d"), true))
	}
	r.remove("forged")
	r.remove("honest")
}

func (r *forgeryRun) requireOutcome() {
	for handler, want := range map[string]int{"c": 1, "u": 1, "f/spec.value": 2, "p/one": 2, "d": 1} {
		if got := r.countCalls("honest", handler); got != want {
			r.t.Errorf("the honest object has %d calls of %s, want %d", got, handler, want)
		}
	}
	asked := r.acceptedMoves + 3 // with the creation, its label, and the deletion
	for _, handler := range []string{"c", "u", "f/spec.value", "p/one", "p/two", "r", "d"} {
		if got := r.countCalls("forged", handler); got > asked*attempts {
			r.t.Errorf("%d calls of %s for %d changes", got, handler, asked)
		}
	}
	if got := r.countWrites("forged"); got > asked*maxWritesPerMove {
		r.t.Errorf("%d writes for %d changes", got, asked)
	}
	if left := r.object("honest"); left != nil {
		r.t.Error("the honest object is not gone")
	}
	if left := r.object("forged"); left != nil && !delaysDeletion(left) {
		r.t.Errorf("the forged object is not gone: %v", left.GetAnnotations())
	}
	if r.rights == "status" && !r.storage.inStatus && r.countCalls("forged", "d") == 0 {
		r.t.Error("a client that may only write the status must not skip the delete handler")
	}
	if longest := r.longestLogLine(); len(longest) > longestLine {
		r.t.Errorf("a line of the log has %d bytes: %.300s", len(longest), longest)
	}
}

// delaysDeletion reports whether a record delays the deletion, which only concerns this object.
func delaysDeletion(object *unstructured.Unstructured) bool {
	return strings.Contains(fmt.Sprint(object.Object), "9999-12-31T23:59:59")
}
