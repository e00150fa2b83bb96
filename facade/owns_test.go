package kopf_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

type (
	roomEvent = kopf.ChildEvent[*kopf.Unstructured, *corev1.ConfigMap]
	houseSel  = kopf.Selection[*kopf.Unstructured]
)

// childCalls records the calls of child handlers.
type childCalls struct {
	mu    sync.Mutex
	calls []string
}

func (h *childCalls) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, fmt.Sprintf(format, args...))
}

func (h *childCalls) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.calls
	h.calls = nil
	return all
}

func (h *childCalls) want(t *testing.T, when string, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, h.take()); d != "" {
		t.Errorf("%s: -want, +got:\n%s", when, d)
	}
}

// recordEvent is a child handler that records its event.
func (h *childCalls) recordEvent(_ context.Context, e *roomEvent) error {
	kind := e.Type
	if kind == kopf.WatchEventListed {
		kind = "LISTED"
	}
	h.note("%s %s/%s=%s of %s", kind, e.Child.Namespace, e.Child.Name, e.Child.Data["value"], e.Object.GetName())
	return nil
}

// editRoom edits a room as another client.
func (h ensureFixture) editRoom(namespace, name, value string) {
	h.api.Edit(settings, namespace, name, func(room map[string]any) { room["data"] = map[string]any{"value": value} })
	h.settle()
}

func (h ensureFixture) deleteRoom(namespace, name string) {
	room := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	room.SetNamespace(namespace)
	room.SetName(name)
	if err := h.directClient.Delete(h.t.Context(), room); err != nil {
		h.t.Error(err)
	}
	h.settle()
}

// createOwnedRoom creates a room as another client, with the house as its owner.
func (h ensureFixture) createOwnedRoom(name, value string) {
	room := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"value": value},
		"metadata": map[string]any{"name": name, "namespace": "default", "ownerReferences": []any{map[string]any{
			"apiVersion": "test.example.org/v1", "kind": "House", "name": "home", "uid": string(h.house().GetUID()),
		}}},
	}}
	if err := h.directClient.Create(h.t.Context(), room); err != nil {
		h.t.Error(err)
	}
	h.settle()
}

// TestOnChild shows which changes of children are reported, and that the change handler is not called for them.
func TestOnChild(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var told childCalls
		calls := 0
		begin := func(s houseSel) {
			s.On("ensure", nonDeleteReasons[:2], func(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
				calls++
				return ensure(ctx, c)
			})
			s.Owns(&corev1.ConfigMap{})
			kopf.OnChild(s, "room", told.recordEvent)
		}
		_, stop := h.run(begin)
		h.createHouseAndWait("bath=1", "other/attic=1")
		told.want(t, "creations by Ensure are not reported")
		h.createOwnedRoom("guest", "1")
		told.want(t, "a child that another client creates is reported", "ADDED default/guest=1 of home")
		h.editRoom("default", "guest", "2")
		told.want(t, "an edit by another client is reported", "MODIFIED default/guest=2 of home")
		h.editRoom("other", "attic", "2")
		told.want(t, "an edit in another namespace is reported by the label, and its repair is not",
			"MODIFIED other/attic=2 of home")
		h.deleteRoom("default", "guest")
		told.want(t, "a deletion by another client is reported", "DELETED default/guest=2 of home")
		if calls != 1 {
			t.Errorf("the handler of changes was called %d times, want once: the object has not changed", calls)
		}
		stop()

		_, stop = h.run(begin)
		h.settle()
		told.want(t, "a restart reports existing children", "LISTED default/bath=1 of home",
			"LISTED other/attic=1 of home")
		h.changeRooms("bath=3")
		told.want(t, "an update reports the deletion of a child that is not declared any more",
			"DELETED other/attic=1 of home")
		stop()
	})
}

// TestOnChildFilters shows that child handlers are filtered by their owners and by their children.
func TestOnChildFilters(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var told childCalls
		_, stop := h.run(func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			kopf.OnChild(s.MatchingLabels("street=high"), "room", told.recordEvent, kopf.WhenChild(
				func(_ context.Context, room *corev1.ConfigMap) bool { return room.Data["value"] != "2" },
			))
			kopf.OnChild(s.MatchingLabels("street=low"), "low", told.recordEvent)
		})
		h.createHouseAndWait()
		h.createOwnedRoom("guest", "1")
		h.editRoom("default", "guest", "2")
		h.editRoom("default", "guest", "3")
		told.want(t, "owners and children are filtered",
			"ADDED default/guest=1 of home", "MODIFIED default/guest=3 of home")
		stop()
	})
}

// TestOwnsSharesTheInformer shows that all handlers of a kind share one informer, which starts when the kind is
// installed.
func TestOwnsSharesTheInformer(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		h.api.Remove("", "configmaps")
		var told childCalls
		way, stop := h.run(func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			kopf.OnChild(s, "one", told.recordEvent)
			kopf.OnChild(s, "two", told.recordEvent)
		})
		h.settle()
		way.DrainRequests()
		h.api.Install(settings)
		time.Sleep(time.Minute)
		watches := 0
		for _, r := range way.DrainRequests() {
			if r.Verb == "watch" && r.Resource.Plural == "configmaps" {
				watches++
			}
		}
		h.createHouseAndWait()
		h.createOwnedRoom("guest", "1")
		told.want(t, "both handlers are called", "ADDED default/guest=1 of home", "ADDED default/guest=1 of home")
		if watches != 1 {
			t.Errorf("%d watches of one kind, want 1", watches)
		}
		stop()
	})
}
