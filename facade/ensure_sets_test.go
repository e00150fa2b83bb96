package kopf_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestEnsureHoldsAParentThatCannotOwn shows that the operator deletes children that the house cannot own, and that
// the finalizer is on the house only while such children exist.
func TestEnsureHoldsAParentThatCannotOwn(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		_, stop := h.runEnsure()
		defer stop()
		h.createHouseAndWait("a=1", "yard/b=2", "Namespace//annex")
		if h.owner("default", "a") != h.house().GetUID() || h.owner("yard", "b") != "nobody" ||
			h.api.Object(clusterNamespaces, "", "annex") == nil {
			t.Errorf("only the child in the same namespace is owned: got owners %q and %q",
				h.owner("default", "a"), h.owner("yard", "b"))
		}
		held := []string{"test.example.org/finalizer"}
		if got := h.house().GetFinalizers(); !slices.Equal(got, held) {
			t.Errorf("the house has the finalizer: got %v", got)
		}
		h.changeRooms("a=1")
		if h.room("yard", "b") != nil || h.api.Object(clusterNamespaces, "", "annex") != nil ||
			len(h.house().GetFinalizers()) > 0 {
			t.Errorf("undeclared children and the finalizer are removed: got %v", h.house())
		}
		h.changeRooms("a=1", "yard/b=2", "Namespace//annex")
		h.api.Delete(houses, "default", "home")
		h.settle()
		if h.api.Object(houses, "default", "home") != nil || h.room("yard", "b") != nil ||
			h.api.Object(clusterNamespaces, "", "annex") != nil {
			t.Errorf("the house and the children that it cannot own are deleted: got %v, %v",
				h.house(), h.room("yard", "b"))
		}
		if h.room("default", "a") == nil {
			t.Error("the operator leaves owned children to the garbage collector")
		}
	})
}

// TestEnsureKeepsSetsApart shows that each handler has its own set: a child that one handler drops is kept while
// another one declares it.
func TestEnsureKeepsSetsApart(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		_, stop := h.run(func(s kopf.Selection[*kopf.Unstructured]) {
			s.On("ensure", nonDeleteReasons, ensure)
			s.On("cellar", nonDeleteReasons, func(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
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
		h.createHouseAndWait("a=1", "shared=1")
		h.changeRooms("a=1")
		if h.room("default", "shared") == nil || h.room("default", "wine") == nil {
			t.Error("a child that another handler declares is kept")
		}
		h.changeRooms("no-cellar")
		if h.room("default", "shared") != nil || h.room("default", "wine") != nil || h.room("default", "a") != nil {
			t.Error("an undeclared child is deleted")
		}
	})
}

// TestEnsureOfTwoThatDropOneChild shows that a child that two handlers drop in one pass is deleted without an
// error.
func TestEnsureOfTwoThatDropOneChild(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		_, stop := h.run(func(s kopf.Selection[*kopf.Unstructured]) {
			s.On("ensure", nonDeleteReasons, ensure)
			s.On("again", nonDeleteReasons, ensure)
		})
		defer stop()
		h.createHouseAndWait("a=1", "b=1")
		h.changeRooms("a=1")
		if h.room("default", "a") == nil || h.room("default", "b") != nil {
			t.Errorf("only the dropped child is deleted: a is %v, b is %v",
				h.room("default", "a"), h.room("default", "b"))
		}
	})
}

// TestEnsureInTheBackground shows that a daemon can declare its set repeatedly, and a timer in each call. Without
// changes, nothing is written.
func TestEnsureInTheBackground(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
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
		h.createHouseAndWait("a=1", "b=1")
		h.changeRooms("a=1")
		if h.owner("default", "a") != h.house().GetUID() || h.room("default", "b") != nil ||
			h.room("yard", "ticked") == nil {
			t.Errorf("the sets of the daemon and the timer are applied: a is %v, b is %v",
				h.room("default", "a"), h.room("default", "b"))
		}
		before := h.house().GetResourceVersion()
		way.DrainRequests()
		h.settle()
		if now := h.house().GetResourceVersion(); now != before {
			t.Errorf("without changes, the house is not written: got %v", writes(way))
		}
		for _, r := range way.Requests() {
			if r.Verb == "get" {
				t.Errorf("an applied child is not read again: got %s", r.Path)
			}
		}
		h.api.Delete(houses, "default", "home")
		h.settle()
		if h.api.Object(houses, "default", "home") != nil || h.room("yard", "ticked") != nil {
			t.Errorf("the house and the child that it cannot own are deleted: got %v, %v",
				h.house(), h.room("yard", "ticked"))
		}
	})
}

// house returns a house that is not on the API server.
func house(rooms ...any) *kopf.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"rooms": rooms}}}
}
