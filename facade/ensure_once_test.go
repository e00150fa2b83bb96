package kopf_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// ensureWith returns a handler that declares the rooms of the house with the rule.
func ensureWith(rule func(child any) any) kopf.ChangeFunc[*kopf.Unstructured] {
	return func(ctx context.Context, c *houseChange) error { return c.Ensure(ctx, rule(rooms(c.Object))) }
}

func (h ensureFixture) value(namespace, name string) string {
	h.t.Helper()
	room := h.room(namespace, name)
	if room == nil {
		return "absent"
	}
	value, _, _ := nested(room, "data", "value")
	return value
}

// TestEnsureOnce shows that a child with Once keeps its first content over updates, restarts and edits. It is
// created again after a deletion, and pruned like other children.
func TestEnsureOnce(t *testing.T) {
	for name, owns := range map[string]bool{"Watched": true, "NotWatched": false} {
		t.Run(name, func(t *testing.T) {
			withEnsureFixture(t, func(h ensureFixture) {
				var calls atomic.Int64
				start := func() func() {
					_, stop := h.run(func(s houseSel) {
						if owns {
							s.Owns(&corev1.ConfigMap{})
						}
						s.On("ensure", nonDeleteReasons, func(ctx context.Context, c *houseChange) error {
							if len(kopf.GetFieldOr(c.Object, "spec.rooms", []string(nil))) == 0 {
								return c.Ensure(ctx)
							}
							password := strconv.FormatInt(calls.Add(1), 10)
							room := &corev1.ConfigMap{Data: map[string]string{"value": password}}
							room.Name = "login"
							return c.Ensure(ctx, []any{kopf.Once(room)}, rooms(c.Object))
						})
					})
					return stop
				}
				stop := start()
				h.createHouseAndWait("a=1")
				h.changeRooms("a=2")
				stop()
				stop = start()
				h.settle()
				if got := h.value("default", "login"); got != "1" || calls.Load() != 3 {
					t.Errorf("the child keeps its first value over an update and a restart: got %q after %d calls",
						got, calls.Load())
				}
				if got := h.value("default", "a"); got != "2" || h.owner("default", "login") != h.house().GetUID() {
					t.Errorf("the other child is updated, and the child with Once is owned: got %q, owner %q",
						got, h.owner("default", "login"))
				}
				h.editRoom("default", "login", "edited")
				h.changeRooms("a=3")
				if got := h.value("default", "login"); got != "edited" {
					t.Errorf("an edit of the child is kept: got %q", got)
				}
				h.deleteRoom("default", "login")
				if got := h.value("default", "login"); owns && got != "4" {
					t.Errorf("a deleted child that is watched is created again: got %q", got)
				}
				h.changeRooms("a=4")
				if got, want := h.value("default", "login"), map[bool]string{true: "4", false: "5"}[owns]; got != want {
					t.Errorf("the deleted child is created again: got %q, want %q", got, want)
				}
				h.changeRooms()
				if got := h.value("default", "login"); got != "absent" {
					t.Errorf("an undeclared child is deleted: got %q", got)
				}
				stop()
			})
		})
	}
}

// TestEnsureOnceLeavesStrangersAlone shows that an object of another owner is not accepted as a child with Once.
func TestEnsureOnceLeavesStrangersAlone(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		heard := &ensureErrors{}
		_, stop := h.run(func(s houseSel) {
			s.On("ensure", nonDeleteReasons, heard.noting(ensureWith(kopf.Once)))
		})
		defer stop()
		h.putConfigMap("b", "theirs")
		before := h.room("default", "b").GetResourceVersion()
		h.createHouseAndWait("a=1", "b=2")
		heard.requireLast(t, "child 1", "ConfigMap default/b", "not a child of this parent")
		h.changeRooms("a=1")
		if h.room("default", "b").GetResourceVersion() != before {
			t.Errorf("the object of another owner is not changed: got %v", h.room("default", "b"))
		}
	})
}
