package kopf_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// runRepairing runs an operator that ensures rooms and watches them. Drain returns its writes since the last call.
func (h ensureFixture) runRepairing() (drain func() []string, stop func()) {
	h.t.Helper()
	way, stop := h.run(func(s houseSel) {
		s.On("ensure", nonDeleteReasons, ensure)
		s.Owns(&corev1.ConfigMap{})
	})
	return func() []string { return writes(way) }, stop
}

// TestRepairLeavesOthersAlone shows that changes of undeclared fields by other clients are not drift, and cost at most
// one request, which changes nothing.
func TestRepairLeavesOthersAlone(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		drain, stop := h.runRepairing()
		h.createHouseAndWait("bath=1", "kitchen=1")
		drain()
		h.api.Edit(settings, "default", "bath", func(room map[string]any) { room["status"] = map[string]any{"a": "b"} })
		h.settle()
		if got := drain(); len(got) > 0 {
			t.Errorf("a change of the status must not be repaired: %v", got)
		}
		h.api.Edit(settings, "default", "bath", func(room map[string]any) {
			room["data"].(map[string]any)["foreign"] = "stays"
		})
		h.settle()
		if got, _, _ := nested(h.room("default", "bath"), "data", "foreign"); got != "stays" {
			t.Error("the field of another client must stay")
		}
		if d := cmp.Diff([]string{"patch configmaps"}, drain()); d != "" {
			t.Errorf("the writes: -want, +got:\n%s", d)
		}

		h.changeRooms("bath=1") // the kitchen is not declared any more
		h.settle()
		if h.room("default", "kitchen") != nil {
			t.Error("a child that is not declared any more must not be restored")
		}
		if err := h.directClient.Delete(t.Context(), h.house()); err != nil {
			t.Fatal(err)
		}
		h.settle()
		drain()
		h.deleteRoom("default", "bath") // as the garbage collector does
		if h.room("default", "bath") != nil {
			t.Error("a child of a deleted parent must not be restored")
		}
		stop()
	})
}

// TestRepairAsksForTheParent shows when a deleted child is restored: not if its parent is being deleted, which
// the informer can report later. If that cannot be read, the child is restored.
func TestRepairAsksForTheParent(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		read   func(ctx context.Context, h ensureFixture) error // before the parent is read
		want   bool
	}{
		"exists": {"a child of an existing parent is restored",
			func(context.Context, ensureFixture) error { return nil }, true},
		"being deleted": {"a child of a parent that is being deleted is not restored",
			func(ctx context.Context, h ensureFixture) error {
				return h.directClient.Delete(ctx, h.house())
			}, false},
		"unreadable": {"a child is restored if the parent cannot be read",
			func(context.Context, ensureFixture) error {
				return memapi.NewRefusal(http.StatusForbidden, "reason", "Forbidden")
			}, true},
	} {
		t.Run(name, func(t *testing.T) {
			withEnsureFixture(t, func(h ensureFixture) {
				way, stop := h.run(func(s houseSel) {
					s.On("ensure", nonDeleteReasons, ensure)
					s.Owns(&corev1.ConfigMap{})
				})
				h.createHouseAndWait("bath=1")
				h.api.Edit(houses, "default", "home", func(house map[string]any) {
					(&unstructured.Unstructured{Object: house}).SetFinalizers([]string{"other.example.com/finalizer"})
				})
				h.settle()
				reads := 0
				way.Before = func(ctx context.Context, r memapi.Request) error {
					if r.Verb != "get" || r.Resource.Plural != "houses" {
						return nil
					}
					reads++
					return c.read(ctx, h)
				}
				h.deleteRoom("default", "bath")
				h.settle()
				if got := h.room("default", "bath") != nil; got != c.want || reads == 0 {
					t.Errorf("%s: the child exists: %t, after %d reads of the parent", c.reason, got, reads)
				}
				stop()
			})
		})
	}
}
