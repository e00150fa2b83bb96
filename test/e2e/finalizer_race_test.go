package e2e_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const testFinalizer = "race.example.org/finalizer"

// raceCount returns the number of raced objects per case; RACES sets a higher one for measurements.
func raceCount() int {
	GinkgoHelper()
	wanted := os.Getenv("RACES")
	if wanted == "" {
		return 20
	}
	n, err := strconv.Atoi(wanted)
	Expect(err).NotTo(HaveOccurred(), "RACES must be a number")
	return n
}

// deletion returns the options of a delete request for the object as it was before the race.
type deletion func(obj *unstructured.Unstructured) []client.DeleteOption

// race adds a finalizer to an object and deletes it after the given delay. It reports whether the object was removed
// although the finalizer had been accepted before any deletion.
func race(ctx context.Context, obj *unstructured.Unstructured, later time.Duration, how deletion) (lost bool) {
	GinkgoHelper()
	create(ctx, obj)
	var both sync.WaitGroup
	begin, held := time.Now().Add(5*time.Millisecond), obj.DeepCopy()
	var heldErr error
	both.Go(func() {
		time.Sleep(time.Until(begin))
		patch := fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, testFinalizer)
		heldErr = api.Patch(ctx, held, client.RawPatch(types.MergePatchType, []byte(patch)))
	})
	both.Go(func() {
		time.Sleep(time.Until(begin.Add(later)))
		_ = api.Delete(ctx, obj.DeepCopy(), how(obj)...) // a rejected deletion counts as not lost
	})
	both.Wait()
	left, err := now(ctx, obj)()
	Expect(err).NotTo(HaveOccurred())
	if left != nil {
		merge(ctx, obj, `{"metadata":{"finalizers":null}}`)
	}
	return left == nil && heldErr == nil && held.GetDeletionTimestamp() == nil
}

// If the API server finds no finalizer, it deletes the object in the storage with only the caller's preconditions. If
// the object changes meanwhile, it retries with the new version and does not check finalizers again.
var _ = Describe("A finalizer that races with a deletion", func() {
	closed := map[string]struct {
		finalizers    []string
		deleteOptions deletion
	}{
		"set at admission, before anything else is": {
			[]string{testFinalizer}, func(*unstructured.Unstructured) []client.DeleteOption { return nil },
		},
		"deleted in the foreground": {nil, func(*unstructured.Unstructured) []client.DeleteOption {
			return []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationForeground)}
		}},
		"deleted in the version that was seen": {nil, func(obj *unstructured.Unstructured) []client.DeleteOption {
			return []client.DeleteOption{client.Preconditions{ResourceVersion: ptr.To(obj.GetResourceVersion())}}
		}},
	}
	offsets := []time.Duration{
		-2 * time.Millisecond, -time.Millisecond, 0, time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond,
		20 * time.Millisecond,
	}

	It("can be too late (measured)", func(ctx context.Context) {
		ns := namespace(ctx)
		for _, later := range offsets {
			lost := 0
			for n := range raceCount() {
				if race(ctx, gadget(ns, fmt.Sprintf("raced%d-%d", later.Microseconds()+10_000, n), nil), later,
					func(*unstructured.Unstructured) []client.DeleteOption { return nil }) {
					lost++
				}
			}
			AddReportEntry(fmt.Sprintf("deletion sent %s after the finalizer: %d of %d lost", later, lost, raceCount()))
		}
	})

	for name, way := range closed {
		It("always holds an object "+name, func(ctx context.Context) {
			ns, lost := namespace(ctx), 0
			for n := range raceCount() {
				obj := gadget(ns, fmt.Sprintf("held-%d", n), nil)
				obj.SetFinalizers(way.finalizers)
				if race(ctx, obj, offsets[n%len(offsets)], way.deleteOptions) {
					lost++
				}
			}
			Expect(lost).To(BeZero())
		})
	}
})
