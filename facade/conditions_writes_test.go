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

// twice is an error of the first two attempts of a creation.
func twice(c *dynamicChange) error {
	if c.Reason == kopf.ReasonCreate && c.Retry < 2 {
		return kopf.Temporary(errors.New("later"), time.Minute)
	}
	return nil
}

// Conditions cost one request more for each pass that has something to tell and does not write to the status anyway,
// and none for all others, as the API server counts them.
func TestConditionsCostOneWriteAtMost(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	for name, c := range map[string]struct {
		reason   string
		register func(s houseSel)
		given    kopf.PersistenceSettings
		more     [6]int // writes of the status at each of the acts below
	}{
		"nothing in the status": {"each outcome is told", func(s houseSel) {
			s.On("do", always[:2], func(_ context.Context, c *dynamicChange) error { return twice(c) })
		}, kopf.PersistenceSettings{}, [6]int{1, 1, 1, 1, 0, 0}},
		"several handlers": {"a pass is one, however many there are", func(s houseSel) {
			for _, id := range []string{"a", "b", "c"} {
				s.On(id, always[:2], func(_ context.Context, c *dynamicChange) error { return twice(c) })
			}
		}, kopf.PersistenceSettings{}, [6]int{1, 1, 1, 1, 0, 0}},
		"sub-handlers": {"neither do they count", func(s houseSel) {
			s.On("do", always[:2], func(ctx context.Context, c *dynamicChange) error {
				for _, id := range []string{"a", "b"} {
					c.Sub(id, func(_ context.Context, c *dynamicChange) error { return twice(c) })
				}
				return c.RunSubs(ctx)
			})
		}, kopf.PersistenceSettings{}, [6]int{1, 1, 1, 1, 0, 0}},
		"a failure for good": {"it is told once", func(s houseSel) {
			s.On("do", always[:2], func(context.Context, *dynamicChange) error {
				return kopf.Permanent(errors.New("no"))
			})
		}, kopf.PersistenceSettings{}, [6]int{1, 0, 0, 1, 0, 0}},
		"a status of the handler's": {"both are one write", func(s houseSel) {
			s.On("do", always[:2], func(_ context.Context, c *dynamicChange) error {
				at := time.Now().Unix()
				c.Patch(func(house *kopf.Unstructured) {
					_ = unstructured.SetNestedField(house.Object, at, "status", "at")
				})
				return twice(c)
			})
		}, kopf.PersistenceSettings{}, [6]int{}},
		"a condition of the handler's": {"it is in the same list", func(s houseSel) {
			s.On("do", always[:2], func(_ context.Context, c *dynamicChange) error {
				c.Condition("Size", "True", "Known", time.Now().String())
				return twice(c)
			})
		}, kopf.PersistenceSettings{}, [6]int{}},
		"progress in the status": {"that is written at each attempt anyway, and when it is removed", func(s houseSel) {
			s.On("do", always[:2], func(_ context.Context, c *dynamicChange) error { return twice(c) })
		}, kopf.PersistenceSettings{ProgressStorage: progress.Status{}}, [6]int{0, 0, 0, 1, 0, 0}},
		"nobody called": {"a generation is observed all the same", func(s houseSel) {
			s.OnField("do", "spec.name", func(context.Context, *dynamicChange) error { return nil })
		}, kopf.PersistenceSettings{}, [6]int{1, 0, 0, 1, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			plain, told := writesOf(t, c.register, c.given, false), writesOf(t, c.register, c.given, true)
			var more [6]int
			for act := range more {
				status := told[act]["patch houses/status"] - plain[act]["patch houses/status"]
				more[act] = status
				delete(told[act], "patch houses/status")
				delete(plain[act], "patch houses/status")
			}
			if d := cmp.Diff(c.more, more); d != "" {
				t.Errorf("writes of the status more, %s: -want, +got:\n%s", c.reason, d)
			}
			if d := cmp.Diff(plain, told); d != "" {
				t.Errorf("all other writes: -without conditions, +with:\n%s", d)
			}
		})
	}
}

// writesOf plays one life of a house, and counts the writes of each act.
func writesOf(
	t *testing.T, register func(s houseSel), given kopf.PersistenceSettings, conditions bool,
) (all []map[string]int) {
	t.Helper()
	inConditional(t, nil, func(e conditional) {
		way, _, stop := e.run(register, kopf.Settings{
			Persistence: given, Conditions: conditions,
		})
		defer stop()
		wait := func(d time.Duration) func() { return func() { time.Sleep(d); e.settle() } }
		for _, act := range []func(){
			func() { e.build(map[string]any{"size": int64(1)}) },
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
