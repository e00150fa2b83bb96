package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// stateReads counts the storage calls of an operator in each pass.
type stateReads struct {
	mu     sync.Mutex
	passes []string // the times and object versions of the passes, in order
	counts map[string]map[string]int
}

func (r *stateReads) note(body map[string]any, what string) {
	version, _ := diff.ResolvePath(body, diff.Path{"metadata", "resourceVersion"})
	if name, _ := diff.ResolvePath(body, diff.Path{"metadata", "name"}); name == "any" {
		return // the object by which storages are checked
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	pass := fmt.Sprint(time.Now(), version)
	if r.counts[pass] == nil {
		r.passes = append(r.passes, pass)
		r.counts[pass] = map[string]int{}
	}
	r.counts[pass][what]++
}

// take returns the counts of the passes since its last call.
func (r *stateReads) take() (counts []map[string]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, pass := range r.passes {
		counts = append(counts, r.counts[pass])
	}
	r.passes, r.counts = nil, map[string]map[string]int{}
	return counts
}

type countedDiffbase struct {
	*stateReads
	diffbase.Annotations
}

func (s countedDiffbase) Build(body map[string]any, extra []diff.Path) (diffbase.Essence, error) {
	s.note(body, "essence")
	return s.Annotations.Build(body, extra)
}

func (s countedDiffbase) Fetch(body map[string]any) (diffbase.Essence, error) {
	s.note(body, "last handled")
	return s.Annotations.Fetch(body)
}

type countedProgress struct {
	*stateReads
	progress.Annotations
}

func (s countedProgress) Fetch(body map[string]any, id string) (*progress.Record, error) {
	s.note(body, id)
	return s.Annotations.Fetch(body, id)
}

// countedOperator returns an operator with a timer and with change handlers, one of which fails twice after a certain
// edit.
func countedOperator(reads *stateReads) *kopf.Operator {
	op := kopf.New("reads.example.org", kopf.Settings{
		Peering: kopf.PeeringSettings{Standalone: true},
		Persistence: kopf.PersistenceSettings{
			DiffbaseStorage: countedDiffbase{reads, diffbase.Annotations{Prefix: "reads.example.org"}},
			ProgressStorage: countedProgress{reads, progress.Annotations{Prefix: "reads.example.org"}},
		},
	})
	type Change = kopf.Change[*kopf.Unstructured]
	succeed := func(context.Context, *Change) error { return nil }
	objects := kopf.ForResource(op, "configmaps")
	objects.OnCreate("a", succeed)
	objects.OnUpdate("b", succeed)
	objects.OnUpdate("c", func(_ context.Context, c *Change) error {
		if value, _, _ := unstructured.NestedString(c.Object.Object, "data", "k"); value != "retry" {
			return nil
		}
		c.Sub("part", func(_ context.Context, c *Change) error {
			if c.Retry < 2 {
				return kopf.Temporary(errors.New("not yet"), time.Minute)
			}
			return nil
		})
		return nil
	})
	objects.OnDelete("d", succeed)
	objects.Timer("t", time.Hour, func(context.Context, *kopf.Task[*kopf.Unstructured]) error { return nil })
	return op
}

// TestStateIsReadOnce shows that a pass builds the essence of an object once, and fetches the last-handled
// configuration and each record once.
func TestStateIsReadOnce(t *testing.T) {
	whole := map[string]int{"essence": 1, "last handled": 1, "a": 1, "b": 1, "c": 1, "d": 1}
	parts := maps.Clone(whole)
	parts["c/part"] = 1
	synctest.Test(t, func(t *testing.T) {
		reads, server := &stateReads{counts: map[string]map[string]int{}}, memapi.New()
		user := clientOf(t, server)
		facadetest.Start(t, countedOperator(reads), facadetest.Against(memapi.Config(server))).Ready()
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": "one"},
		}}
		edit := func(value string) error {
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"k":%q}}`, value))
			return user.Patch(t.Context(), object.DeepCopy(), patch)
		}
		for _, step := range []struct {
			name   string
			act    func() error
			passes []map[string]int
		}{
			{"creation, before the finalizer and after", func() error {
				return user.Create(t.Context(), object.DeepCopy())
			}, []map[string]int{whole, whole}},
			{"update", func() error { return edit("v") }, []map[string]int{whole}},
			// Each attempt is followed by the event of its own write.
			{"retries", func() error { return edit("retry") }, []map[string]int{parts, whole, parts, whole, parts}},
			{"ticks of a timer", func() error { time.Sleep(3 * time.Hour); return nil }, []map[string]int{}},
			{"deletion", func() error { return user.Delete(t.Context(), object.DeepCopy()) }, []map[string]int{whole}},
		} {
			reads.take()
			if err := step.act(); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if d := cmp.Diff(step.passes, append([]map[string]int{}, reads.take()...)); d != "" {
				t.Errorf("%s: calls of the storages in each pass (-want, +got):\n%s", step.name, d)
			}
		}
	})
}
