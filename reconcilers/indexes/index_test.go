package indexes_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
)

// TestIndexAgainstAList shows that random changes have the same effect on an index and on a plain list.
func TestIndexAgainstAList(t *testing.T) {
	index, list := indexes.New(), map[types.UID]map[any]any{}
	random := rand.New(rand.NewPCG(1, 2))
	for step := range 5000 {
		uid := types.UID(fmt.Sprint("u", random.IntN(20)))
		if random.IntN(4) == 0 {
			index.ReplaceEntries(uid, nil)
			delete(list, uid)
			continue
		}
		entries := map[any]any{}
		for range random.IntN(4) {
			entries[random.IntN(6)] = step
		}
		index.ReplaceEntries(uid, entries)
		list[uid] = entries
		for key := range 6 {
			var want []int
			for _, entries := range list {
				if value, held := entries[key]; held {
					want = append(want, value.(int))
				}
			}
			var got []int
			for _, value := range index.Get(key) {
				got = append(got, value.(int))
			}
			slices.Sort(want)
			slices.Sort(got)
			if d := cmp.Diff(want, got); d != "" || index.Count(key) != len(want) {
				t.Fatalf("step %d, key %d: -want, +got:\n%s", step, key, d)
			}
		}
	}
}

// TestIndexSnapshotsAreStable shows that returned values do not change with later writes.
func TestIndexSnapshotsAreStable(t *testing.T) {
	index := indexes.New()
	for n := range 10 {
		index.ReplaceEntries(types.UID(fmt.Sprint(n)), map[any]any{"k": n})
	}
	before := index.Get("k")
	copied := slices.Clone(before)
	for n := range 10 {
		index.ReplaceEntries(types.UID(fmt.Sprint(n)), nil)
	}
	if d := cmp.Diff(copied, before); d != "" || index.Get("k") != nil || index.Len() != 0 {
		t.Errorf("-want, +got:\n%s; now there are %v", d, index.Get("k"))
	}
}

func TestIndexConcurrently(t *testing.T) {
	index := indexes.New()
	var workers sync.WaitGroup
	for worker := range 8 {
		workers.Go(func() {
			for n := range 2000 {
				uid := types.UID(fmt.Sprint(n % 50))
				switch (n + worker) % 4 {
				case 0:
					index.ReplaceEntries(uid, nil)
				case 1:
					index.ReplaceEntries(uid, map[any]any{"shared": string(uid), n % 7: n})
				default:
					for _, value := range index.Get("shared") {
						if text, _ := value.(string); strings.TrimSpace(text) == "" {
							t.Error("a value is lost")
						}
					}
				}
			}
		})
	}
	workers.Wait()
}

func TestLookupsAllocateNothing(t *testing.T) {
	index := filledIndex(1000)
	var key any = "node-1"
	index.Get(key)
	if n := testing.AllocsPerRun(100, func() { index.Get(key); index.Count(key) }); n != 0 {
		t.Errorf("want no allocations for a lookup, got %v", n)
	}
}

// filledIndex returns an index of the given number of pods, by node and by name.
func filledIndex(pods int) *indexes.ObjectIndex {
	index := indexes.New()
	for n := range pods {
		name := fmt.Sprint("pod-", n)
		index.ReplaceEntries(types.UID(name), map[any]any{fmt.Sprint("node-", n%500): name, name: n})
	}
	return index
}
