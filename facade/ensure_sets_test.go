package kopf_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// What the house cannot own is deleted by the operator, which holds the house for that; and no longer than needed.
func TestEnsureHoldsAParentThatCannotOwn(t *testing.T) {
	inHousehold(t, func(h household) {
		_, stop := h.runEnsure()
		defer stop()
		h.build("a=1", "yard/b=2", "Namespace//annex")
		if h.owner("default", "a") != h.house().GetUID() || h.owner("yard", "b") != "nobody" ||
			h.api.Object(clusterNamespaces, "", "annex") == nil {
			t.Errorf("owners are %q and %q", h.owner("default", "a"), h.owner("yard", "b"))
		}
		held := []string{"test.example.org/finalizer"}
		if got := h.house().GetFinalizers(); !slices.Equal(got, held) {
			t.Errorf("finalizers: %v", got)
		}
		h.rebuild("a=1")
		if h.room("yard", "b") != nil || h.api.Object(clusterNamespaces, "", "annex") != nil ||
			len(h.house().GetFinalizers()) > 0 {
			t.Errorf("something is left: %v", h.house())
		}
		h.rebuild("a=1", "yard/b=2", "Namespace//annex")
		h.api.Delete(houses, "default", "home")
		h.settle()
		if h.api.Object(houses, "default", "home") != nil || h.room("yard", "b") != nil ||
			h.api.Object(clusterNamespaces, "", "annex") != nil {
			t.Errorf("something is left: %v, %v", h.house(), h.room("yard", "b"))
		}
		if h.room("default", "a") == nil {
			t.Error("what Kubernetes deletes was deleted by the operator")
		}
	})
}

// Each handler has a set of its own: what one of them drops stays as long as another one has it.
func TestEnsureKeepsSetsApart(t *testing.T) {
	inHousehold(t, func(h household) {
		_, stop := h.run(func(s kopf.Selection[*kopf.Unstructured]) {
			s.On("ensure", always, ensure)
			s.On("cellar", always, func(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
				c.Sub("wine", func(ctx context.Context, sub *kopf.Change[*kopf.Unstructured]) error {
					if slices.Contains(kopf.GetFieldOr(c.Object, "spec.rooms", []string(nil)), "no-cellar") {
						return sub.Ensure(ctx)
					}
					return sub.Ensure(ctx, rooms(house("shared=1", "wine=1"))...)
				})
				return c.RunSubs(ctx)
			})
		})
		defer stop()
		h.build("a=1", "shared=1")
		h.rebuild("a=1")
		if h.room("default", "shared") == nil || h.room("default", "wine") == nil {
			t.Error("a child of another handler was pruned")
		}
		h.rebuild("no-cellar")
		if h.room("default", "shared") != nil || h.room("default", "wine") != nil || h.room("default", "a") != nil {
			t.Error("a child that nobody declares is left")
		}
	})
}

// Two handlers drop the same child in one pass: one of them deletes it.
func TestEnsureOfTwoThatDropOneChild(t *testing.T) {
	inHousehold(t, func(h household) {
		_, stop := h.run(func(s kopf.Selection[*kopf.Unstructured]) {
			s.On("ensure", always, ensure)
			s.On("again", always, ensure)
		})
		defer stop()
		h.build("a=1", "b=1")
		h.rebuild("a=1")
		if h.room("default", "a") == nil || h.room("default", "b") != nil {
			t.Errorf("a is %v, b is %v", h.room("default", "a"), h.room("default", "b"))
		}
	})
}

// A daemon declares its set whenever it likes, without end; a timer in each tick. Unchanged, nothing is written.
func TestEnsureInTheBackground(t *testing.T) {
	inHousehold(t, func(h household) {
		way, stop := h.run(func(s kopf.Selection[*kopf.Unstructured]) {
			s.Daemon("ensure", func(ctx context.Context, r *kopf.Task[*kopf.Unstructured]) error {
				for {
					if err := r.Ensure(ctx, rooms(r.Latest())...); err != nil {
						return err
					}
					select {
					case <-r.Stopping():
						return nil
					case <-time.After(time.Minute):
					}
				}
			})
			s.Timer("tick", time.Minute, func(ctx context.Context, r *kopf.Task[*kopf.Unstructured]) error {
				return r.Ensure(ctx, rooms(house("yard/ticked=1"))...)
			})
		})
		defer stop()
		h.build("a=1", "b=1")
		h.rebuild("a=1")
		if h.owner("default", "a") != h.house().GetUID() || h.room("default", "b") != nil ||
			h.room("yard", "ticked") == nil {
			t.Errorf("a is %v, b is %v", h.room("default", "a"), h.room("default", "b"))
		}
		before := h.house().GetResourceVersion()
		way.Drain()
		h.settle()
		if now := h.house().GetResourceVersion(); now != before {
			t.Errorf("the house was written: %v", writes(way))
		}
		for _, r := range way.Requests() {
			if r.Verb == "get" {
				t.Errorf("a child that is known was looked up: %s", r.Path)
			}
		}
		h.api.Delete(houses, "default", "home")
		h.settle()
		if h.api.Object(houses, "default", "home") != nil || h.room("yard", "ticked") != nil {
			t.Errorf("something is left: %v, %v", h.house(), h.room("yard", "ticked"))
		}
	})
}

// house is one that is nowhere.
func house(rooms ...any) *kopf.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"rooms": rooms}}}
}
