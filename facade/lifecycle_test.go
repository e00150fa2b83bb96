package kopf_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// byLifecycle runs an operator with three creation handlers, one of which has three sub-handlers, and returns the ids
// of their calls.
func byLifecycle(t *testing.T, settings kopf.ExecutionSettings, subs ...kopf.Lifecycle) []string {
	t.Helper()
	var mu sync.Mutex
	var calls []string
	note := func(_ context.Context, c *kopf.Change[*kopf.Unstructured]) error {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, c.ID)
		return nil
	}
	settings.DefaultBackoff = time.Minute
	op := kopf.New("lifecycle.example.org", kopf.Settings{
		Peering: kopf.PeeringSettings{Standalone: true}, Execution: settings,
	})
	s := kopf.ForResource(op, "configmaps")
	for _, id := range []string{"a", "b", "c"} {
		s.OnCreate(id, func(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
			if id == "c" {
				for i := range 3 {
					c.Sub(fmt.Sprint(i), note)
				}
				if err := c.RunSubs(ctx, subs...); err != nil {
					return err
				}
			}
			return note(ctx, c)
		})
	}
	server := memapi.New()
	server.Put(memapi.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true},
		map[string]any{"metadata": map[string]any{"namespace": "ns", "name": "w1"}})
	r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
	r.Ready()
	time.Sleep(30 * time.Second)
	synctest.Wait()
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(calls)
}

// TestLifecycleFunc shows that a lifecycle function selects and orders handlers and sub-handlers.
func TestLifecycleFunc(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	lastTwo := kopf.LifecycleFunc(func(_ context.Context, due []kopf.Attempt) []kopf.Attempt {
		var ids []string
		for _, h := range due {
			ids = append(ids, h.ID)
		}
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, strings.Join(ids, " "))
		slices.Reverse(due)
		return due[:min(2, len(due))]
	})
	synctest.Test(t, func(t *testing.T) {
		calls := byLifecycle(t, kopf.ExecutionSettings{Lifecycle: lastTwo}, kopf.InOrder)
		if d := cmp.Diff([]string{"c/0", "c/1", "c/2", "c", "b", "a"}, calls); d != "" {
			t.Errorf("the lifecycle function must select and order handlers: -want, +got:\n%s", d)
		}
		if d := cmp.Diff([]string{"a b c", "a"}, asked); d != "" {
			t.Errorf("the lifecycle function must get the due handlers: -want, +got:\n%s", d)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		calls := byLifecycle(t, kopf.ExecutionSettings{}, lastTwo)
		if d := cmp.Diff([]string{"a", "b", "c/2", "c/1", "c/0", "c"}, calls); d != "" {
			t.Errorf("RunSubs must use the lifecycle function of the call for sub-handlers: -want, +got:\n%s", d)
		}
	})
}

// TestLifecycleFuncThatPicksNothing shows that a lifecycle function that selects no handlers does not cause a busy
// loop.
func TestLifecycleFuncThatPicksNothing(t *testing.T) {
	var mu sync.Mutex
	asked := 0
	none := kopf.LifecycleFunc(func(context.Context, []kopf.Attempt) []kopf.Attempt {
		mu.Lock()
		defer mu.Unlock()
		asked++
		return nil
	})
	synctest.Test(t, func(t *testing.T) {
		calls := byLifecycle(t, kopf.ExecutionSettings{Lifecycle: none})
		if len(calls) > 0 || asked < 2 || asked > 10 {
			t.Errorf("calls %v and %d selections within half a minute; want no calls and a few retries", calls, asked)
		}
	})
	asked = 0
	synctest.Test(t, func(t *testing.T) {
		calls := byLifecycle(t, kopf.ExecutionSettings{}, none)
		if d := cmp.Diff([]string{"a", "b"}, calls); d != "" || asked != 1 {
			t.Errorf("RunSubs must fail, so that its handler waits for its backoff: %d selections, -want, +got:\n%s",
				asked, d)
		}
	})
}
