package kopf_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// failTwice returns a temporary error for the first two attempts of a creation.
func failTwice(c *dynamicChange) error {
	if c.Reason == kopf.ReasonCreate && c.Retry < 2 {
		return kopf.Temporary(errors.New("later"), time.Minute)
	}
	return nil
}

// TestConditionsCostOneWriteAtMost shows that conditions cost one additional request for each pass that has a new
// outcome and does not write the status anyway, and nothing for other passes.
func TestConditionsCostOneWriteAtMost(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	for name, c := range map[string]struct {
		reason               string
		register             func(s houseSel)
		persistence          kopf.PersistenceSettings
		wantAdditionalWrites [6]int // additional writes of the status in each of the acts below
	}{
		"nothing in the status": {"each new outcome costs one write of the status", func(s houseSel) {
			s.On("do", nonDeleteReasons[:2], func(_ context.Context, c *dynamicChange) error { return failTwice(c) })
		}, kopf.PersistenceSettings{}, [6]int{1, 1, 1, 1, 0, 0}},
		"sub-handlers": {"sub-handlers of a pass share one write of the status", func(s houseSel) {
			s.On("do", nonDeleteReasons[:2], func(ctx context.Context, c *dynamicChange) error {
				for _, id := range []string{"a", "b"} {
					c.Sub(id, func(_ context.Context, c *dynamicChange) error { return failTwice(c) })
				}
				return c.RunSubs(ctx)
			})
		}, kopf.PersistenceSettings{}, [6]int{1, 1, 1, 1, 0, 0}},
		"a status of the handler's": {"conditions share the write of the handler's own status", func(s houseSel) {
			s.On("do", nonDeleteReasons[:2], func(_ context.Context, c *dynamicChange) error {
				at := time.Now().Unix()
				c.Patch(func(house *kopf.Unstructured) {
					_ = unstructured.SetNestedField(house.Object, at, "status", "at")
				})
				return failTwice(c)
			})
		}, kopf.PersistenceSettings{}, [6]int{}},
		"progress in the status": {"conditions share the writes of progress records in the status", func(s houseSel) {
			s.On("do", nonDeleteReasons[:2], func(_ context.Context, c *dynamicChange) error { return failTwice(c) })
		}, kopf.PersistenceSettings{ProgressStorage: progress.Status{}}, [6]int{0, 0, 0, 1, 0, 0}},
		"no handler": {"a new generation without a handler costs one write of the status", func(s houseSel) {
			s.OnField("do", "spec.name", func(context.Context, *dynamicChange) error { return nil })
		}, kopf.PersistenceSettings{}, [6]int{1, 0, 0, 1, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			plain, told := writesOf(t, c.register, c.persistence, false), writesOf(t, c.register, c.persistence, true)
			var more [6]int
			for act := range more {
				status := told[act]["patch houses/status"] - plain[act]["patch houses/status"]
				more[act] = status
				delete(told[act], "patch houses/status")
				delete(plain[act], "patch houses/status")
			}
			if d := cmp.Diff(c.wantAdditionalWrites, more); d != "" {
				t.Errorf("additional writes of the status, %s: -want, +got:\n%s", c.reason, d)
			}
			if d := cmp.Diff(plain, told); d != "" {
				t.Errorf("conditions do not change other writes: -without conditions, +with:\n%s", d)
			}
		})
	}
}

// writesOf runs the life of one house and counts the writes in each act.
func writesOf(
	t *testing.T, register func(s houseSel), given kopf.PersistenceSettings, conditions bool,
) (all []map[string]int) {
	t.Helper()
	withConditionFixture(t, nil, func(e conditionFixture) {
		way, _, stop := e.run(register, kopf.Settings{
			Persistence: given, Conditions: conditions,
		})
		defer stop()
		wait := func(d time.Duration) func() { return func() { time.Sleep(d); e.settle() } }
		for _, act := range []func(){
			func() { e.createHouse(map[string]any{"size": int64(1)}) },
			wait(time.Minute),
			wait(time.Minute),
			func() { e.edit(resize(2)) },
			func() {
				e.edit(func(house map[string]any) {
					house["metadata"].(map[string]any)["finalizers"] = []any{"others.example.org/hold"}
				})
			},
			wait(time.Hour),
		} {
			act()
			counts := map[string]int{}
			for _, one := range writes(way) {
				counts[one]++
			}
			all = append(all, counts)
		}
	})
	return all
}
