package kopf_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

const (
	strangers    = 400
	strangerSize = 32 << 10 // bytes of text that does not compress to less than three quarters
	perStranger  = 2 << 10  // bytes that an operator may hold for a stranger
)

// createUnownedMaps creates config maps that no house owns.
func (h ensureFixture) createUnownedMaps() {
	h.t.Helper()
	source := rand.New(rand.NewPCG(1, 2))
	for i := range strangers {
		text := make([]byte, strangerSize)
		for j := range text {
			text[j] = byte('!' + source.IntN(64))
		}
		room := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"text": string(text)},
			"metadata": map[string]any{
				"name": fmt.Sprintf("stranger-%d", i), "namespace": "default",
				"annotations": map[string]any{"note": string(text[:1<<10])},
				"ownerReferences": []any{map[string]any{
					"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop", "uid": "shop-1",
				}},
			},
		}}
		if err := h.directClient.Create(h.t.Context(), room); err != nil {
			h.t.Fatal(err)
		}
	}
}

// heldBytes returns the size of all reachable objects.
func heldBytes() int64 {
	runtime.GC() // pools are emptied in the second collection
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc) //nolint:gosec // less than 8 EiB
}

// TestOwnsKeepsNoContentOfStrangers shows that objects of a watched kind that no object of the operator owns take
// almost no memory.
func TestOwnsKeepsNoContentOfStrangers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	withEnsureFixture(t, func(h ensureFixture) {
		h.createUnownedMaps()
		var told childCalls
		before := heldBytes()
		_, stop := h.run(func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			kopf.OnChild(s, "room", told.recordEvent)
		})
		h.settle()
		held := heldBytes() - before
		t.Logf("%d strangers of %d bytes: %d bytes held", strangers, strangerSize, held)
		if limit := int64(strangers * perStranger); held > limit {
			t.Errorf("%d bytes are held for %d strangers of %d bytes each, want at most %d",
				held, strangers, strangerSize, limit)
		}
		stop()
	})
}

// createUnownedRoom creates a room that no house owns.
func (h ensureFixture) createUnownedRoom(name, value string) {
	h.t.Helper()
	room := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"value": value},
		"metadata": map[string]any{"name": name, "namespace": "default"},
	}}
	if err := h.directClient.Create(h.t.Context(), room); err != nil {
		h.t.Fatal(err)
	}
	h.settle()
}

// TestOwnsSharesWholeObjectsWithIndices shows that indices of the kind get whole objects, including those without an
// owner.
func TestOwnsSharesWholeObjectsWithIndices(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var byValue *kopf.Index[string, string]
		_, stop := h.runOperator(kopf.Settings{}, func(op *kopf.Operator, s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			byValue = kopf.NewIndex(kopf.For(op, &corev1.ConfigMap{}), "by-value", func(
				_ context.Context, room *corev1.ConfigMap,
			) (map[string]string, error) {
				return map[string]string{room.Data["value"]: room.Name}, nil
			})
		})
		h.createUnownedRoom("bath", "1")
		if found := byValue.Get("1"); len(found) != 1 {
			t.Errorf("the index has %q for the value, want the object without an owner", found)
		}
		stop()
	})
}

// TestOnlyEnsured shows that with OnlyEnsured, the API server only sends children that Ensure has declared. Drift is
// repaired, including a removed label.
func TestOnlyEnsured(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var told childCalls
		way, stop := h.run(func(s houseSel) {
			s.On("ensure", nonDeleteReasons, ensure)
			s.Owns(&corev1.ConfigMap{}, kopf.OnlyEnsured())
			kopf.OnChild(s, "room", told.recordEvent)
		})
		h.createHouseAndWait("bath=1", "other/attic=1")
		for _, r := range way.DrainRequests() {
			if (r.Verb == "list" || r.Verb == "watch") && r.Resource.Plural == "configmaps" &&
				r.Query.Get("labelSelector") != "test.example.org/parent-uid" {
				t.Errorf("%s of config maps has the selector %q", r.Verb, r.Query.Get("labelSelector"))
			}
		}
		h.createOwnedRoom("guest", "1")
		told.want(t, "a child that Ensure has not declared is not reported")
		h.editRoom("default", "bath", "2")
		told.want(t, "an edit of a declared child is reported", "MODIFIED default/bath=2 of home")
		if value, _, _ := nested(h.room("default", "bath"), "data", "value"); value != "1" {
			t.Errorf("the edit must be repaired: %q", value)
		}
		h.api.Edit(settings, "default", "bath", func(room map[string]any) {
			delete(room["metadata"].(map[string]any), "labels")
		})
		h.settle()
		told.want(t, "a child without the label is reported as deleted until it is repaired",
			"DELETED default/bath=1 of home")
		if label := h.room("default", "bath").GetLabels()["test.example.org/parent-uid"]; label == "" {
			t.Error("the label of a child must be restored")
		}
		h.deleteRoom("other", "attic")
		if h.room("other", "attic") == nil {
			t.Error("a deleted child must be restored")
		}
		stop()
	})
}
