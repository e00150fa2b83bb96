package kopf_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

var errInterrupted = errors.New("interrupted")

// hasBehaviour reports whether the house requests the behaviour.
func hasBehaviour(c *houseChange, what string) bool {
	return slices.Contains(kopf.GetFieldOr(c.Object, "spec.does", []string(nil)), what)
}

// changeHouse changes the rooms of the house and the behaviour of its handler, and waits.
func (h ensureFixture) changeHouse(does string, rooms ...any) {
	h.t.Helper()
	h.api.Edit(houses, "default", "home", func(house map[string]any) {
		house["spec"] = map[string]any{"rooms": rooms, "does": []any{does}}
	})
	h.settle()
}

// existingRooms returns the names of the rooms that exist.
func (h ensureFixture) existingRooms(names ...string) (there []string) {
	for _, name := range names {
		if h.room("default", name) != nil {
			there = append(there, name)
		}
	}
	return there
}

// TestEnsureInSeveralCalls shows that the set consists of the children of all Ensure calls in one handler call:
// children after an obstacle are not deleted before they are declared, and undeclared children are deleted only after a
// complete call.
func TestEnsureInSeveralCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	obstacles := map[string]func(c *houseChange) error{
		"an error": func(*houseChange) error { return kopf.Temporary(errInterrupted, time.Minute) },
		"a panic":  func(*houseChange) error { panic("interrupted") },
		"a wait":   func(c *houseChange) error { return kopf.WaitFor(c, bath(), isRoomReady, time.Hour) },
		"an error of a patch": func(c *houseChange) error {
			c.TryPatch(func(*kopf.Unstructured) error { return kopf.Permanent(errInterrupted) })
			return nil
		},
		"nothing of children": nil,
	}
	for what, obstacle := range obstacles {
		t.Run(what, func(t *testing.T) {
			withEnsureFixture(t, func(h ensureFixture) {
				way, stop := h.run(func(s houseSel) {
					s.Owns(bath())
					s.On("ensure", nonDeleteReasons, func(ctx context.Context, c *houseChange) error {
						if hasBehaviour(c, "stop") && obstacle == nil {
							return nil
						}
						for i, room := range rooms(c.Object) {
							if i > 0 && hasBehaviour(c, "stop") {
								return obstacle(c)
							}
							if err := c.Ensure(ctx, room); err != nil {
								return err
							}
						}
						return c.Ensure(ctx)
					})
				})
				defer stop()
				h.createHouseAndWait("a=1", "b=2", "c=3")
				h.changeHouse("stop", "a=1", "b=2")
				if got := h.existingRooms("a", "b", "c"); len(got) != 3 {
					t.Errorf("after %s, no child is deleted: got %v", what, got)
				}
				way.DrainRequests()
				h.changeHouse("go on", "a=1", "b=2")
				if got := h.existingRooms("a", "b", "c"); !slices.Equal(got, []string{"a", "b"}) {
					t.Errorf("a complete call deletes undeclared children: got %v", got)
				}
				h.changeHouse("go on")
				if got := h.existingRooms("a", "b", "c"); len(got) > 0 ||
					h.house().GetAnnotations()[houseRecord] != "" {
					t.Errorf("no child and no record is left: got %v, %v", got, h.house().GetAnnotations())
				}
			})
		})
	}
}

// TestEnsureTwice shows that declaring a child twice in one handler call requires equal declarations, and that
// nothing is deleted until they are.
func TestEnsureTwice(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		heard := &ensureErrors{}
		_, stop := h.run(func(s houseSel) {
			s.On("ensure", nonDeleteReasons, func(ctx context.Context, c *houseChange) error {
				err := c.Ensure(ctx, rooms(house("a=1"))...)
				if err == nil {
					err = heard.ensure(ctx, c)
				}
				if hasBehaviour(c, "ignore") {
					return nil
				}
				return err
			})
		})
		defer stop()
		h.createHouseAndWait("a=1", "b=2")
		if err := heard.last(); err != nil {
			t.Errorf("an equal second declaration is not an error: got %v", err)
		}
		h.changeRooms("a=2")
		heard.requireLast(t, "child 0 is ConfigMap default/a", "an earlier call", "declare it once", `"ensure"`, "home")
		h.changeHouse("ignore", "a=2")
		value, _, _ := nested(h.room("default", "a"), "data", "value")
		if got := h.existingRooms("a", "b"); len(got) < 2 || value != "1" {
			t.Errorf("a contradiction neither deletes nor changes children: got %v, a is %q", got, value)
		}
		h.changeRooms("a=1")
		if got := h.existingRooms("a", "b"); !slices.Equal(got, []string{"a"}) {
			t.Errorf("equal declarations delete the other child: got %v", got)
		}
	})
}

// TestEnsureFailsToDelete shows that a failed deletion of a child is an error of the handler, which is retried.
func TestEnsureFailsToDelete(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var told childCalls
		var refuse atomic.Bool
		way := h.api.Connect()
		way.Before = func(_ context.Context, r memapi.Request) error {
			if refuse.Load() && r.Verb == "delete" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: r.Resource.Plural}, r.Name, errInterrupted)
			}
			return nil
		}
		defer h.stop(h.runEnsuring(func(s houseSel) {
			s.On("ensure", nonDeleteReasons, func(ctx context.Context, c *houseChange) error {
				told.note("call, retry %d", c.Retry)
				return ensure(ctx, c)
			}, kopf.Backoff(10*time.Minute))
		})(way))
		h.createHouseAndWait("a=1", "b=2")
		told.want(t, "the creation", "call, retry 0")
		refuse.Store(true)
		h.changeRooms("a=1")
		told.want(t, "the deletion fails", "call, retry 0")
		refuse.Store(false)
		h.sleep(10 * time.Minute)
		told.want(t, "the deletion is retried", "call, retry 1")
		if got := h.existingRooms("a", "b"); !slices.Equal(got, []string{"a"}) {
			t.Errorf("the retry deletes the child: got %v", got)
		}
	})
}

// TestEnsureHandsOver shows that a child that moves from a handler to its sub-handler stays the same object, also
// without RunSubs.
func TestEnsureHandsOver(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		_, stop := h.run(func(s houseSel) {
			s.On("ensure", nonDeleteReasons, func(ctx context.Context, c *houseChange) error {
				if hasBehaviour(c, "part") {
					c.Sub("b", func(ctx context.Context, sub *houseChange) error {
						return sub.Ensure(ctx, rooms(house("b=2"))...)
					})
				}
				return ensure(ctx, c)
			})
		})
		defer stop()
		h.createHouseAndWait("a=1", "b=2")
		before := h.room("default", "b").GetUID()
		h.changeHouse("part", "a=1")
		if b := h.room("default", "b"); b == nil || b.GetUID() != before {
			t.Errorf("the child that moved is not deleted: got %v", b)
		}
	})
}

// TestEnsureInATimer shows that all Ensure calls in one call of a timer declare one set.
func TestEnsureInATimer(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		_, stop := h.run(func(s houseSel) {
			s.Timer("tick", time.Minute, func(ctx context.Context, r *kopf.Task[*kopf.Unstructured]) error {
				for i, room := range rooms(r.Latest()) {
					if i > 1 {
						return kopf.Temporary(errInterrupted, time.Minute)
					}
					if err := r.Ensure(ctx, room); err != nil {
						return err
					}
				}
				return nil
			})
		})
		defer stop()
		h.createHouseAndWait("a=1", "b=2")
		h.changeRooms("a=1", "c=3", "d=4")
		if got := h.existingRooms("a", "b", "c"); len(got) != 3 {
			t.Errorf("a failed call of the timer deletes no child: got %v", got)
		}
		h.changeRooms("a=1", "c=3")
		if got := h.existingRooms("a", "b", "c"); !slices.Equal(got, []string{"a", "c"}) {
			t.Errorf("a complete call of the timer deletes undeclared children: got %v", got)
		}
	})
}
