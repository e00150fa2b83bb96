package kopf_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	parentLabel = "test.example.org/parent-uid"
	declaredIn  = "test.example.org/declared-in"
)

// runTwo runs two handlers, each with its own set of children. The second one is called only for creations.
func (h ensureFixture) runTwo() func() {
	_, stop := h.run(func(s houseSel) {
		s.On("ensure", nonDeleteReasons, ensure)
		s.OnCreate("cellar", func(ctx context.Context, c *houseChange) error {
			return c.Ensure(ctx, rooms(house("wine=1", "yard/well=1", "b=1"))...)
		})
	})
	return stop
}

// dropRecords removes all records of children, as another client could.
func (h ensureFixture) dropRecords() {
	h.api.Edit(houses, "default", "home", func(house map[string]any) {
		one := &unstructured.Unstructured{Object: house}
		annotations := one.GetAnnotations()
		for name := range annotations {
			if strings.HasPrefix(name, "test.example.org/children-of") {
				delete(annotations, name)
			}
		}
		one.SetAnnotations(annotations)
	})
}

// presentRooms returns all rooms that exist, with their namespaces.
func (h ensureFixture) presentRooms() (got []string) {
	for _, room := range []string{
		"default/a", "default/b", "default/c", "default/guest", "default/wine", "yard/d", "yard/well",
	} {
		namespace, name, _ := strings.Cut(room, "/")
		if h.room(namespace, name) != nil {
			got = append(got, room)
		}
	}
	return got
}

func (h ensureFixture) requireRooms(when string, want ...string) {
	h.t.Helper()
	if d := cmp.Diff(want, h.presentRooms()); d != "" {
		h.t.Errorf("%s: -want, +got:\n%s", when, d)
	}
}

// TestEnsureRestoresARecordOfThisProcess shows that a record that is removed while the process runs is restored
// from the children that this process has applied, in all namespaces.
func TestEnsureRestoresARecordOfThisProcess(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		_, stop := h.runEnsure()
		defer stop()
		h.createHouseAndWait("a=1", "b=1", "yard/d=1")
		h.dropRecords()
		h.changeRooms("a=1", "c=1", "yard/d=1")
		h.requireRooms("the dropped child is pruned", "default/a", "default/c", "yard/d")
		if record := h.house().GetAnnotations()[houseRecord]; !strings.Contains(record, "yard/d") {
			t.Errorf("the record is restored: got %q", record)
		}
		h.dropRecords()
		h.changeRooms("a=1")
		h.requireRooms("the child of another namespace is pruned", "default/a")
		h.changeRooms("a=1", "yard/d=1")
		h.dropRecords()
		h.settle()
		h.api.Delete(houses, "default", "home")
		h.settle()
		if h.api.Object(houses, "default", "home") != nil || h.room("yard", "d") != nil {
			t.Errorf("the object and its child are deleted: got %v, %v", h.house(), h.room("yard", "d"))
		}
	})
}

// TestEnsureRebuildsALostRecord shows that a record that is removed while no process runs is rebuilt from the
// labelled objects that name it, of the kinds and in the namespaces that the handler declares. Children of other
// handlers, and objects that other clients have labelled, are kept.
func TestEnsureRebuildsALostRecord(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		stop := h.runTwo()
		h.createHouseAndWait("a=1", "b=1", "c=1", "yard/d=1")
		stop()
		h.putConfigMap("guest", "theirs")
		labels := map[string]string{parentLabel: string(h.house().GetUID())}
		h.api.Edit(settings, "default", "guest", func(room map[string]any) {
			(&unstructured.Unstructured{Object: room}).SetLabels(labels)
		})
		h.dropRecords()
		stop = h.runTwo()
		h.changeRooms("a=1")
		h.requireRooms("only children that name this record alone, in declared namespaces, are pruned",
			"default/a", "default/b", "default/guest", "default/wine", "yard/d", "yard/well")
		if got := h.room("default", "a").GetAnnotations()[declaredIn]; got != "children-of.ensure" {
			t.Errorf("the child names its record: got %q", got)
		}
		stop()
	})
}

// TestEnsureNamesAllRecordsOfAChild shows that two handlers that declare the same child both name their records in
// it, and then do not write it again.
func TestEnsureNamesAllRecordsOfAChild(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		way, stop := h.run(func(s houseSel) {
			s.On("ensure", nonDeleteReasons, ensure)
			s.On("again", nonDeleteReasons, ensure)
			s.Owns(bath())
		})
		defer stop()
		h.createHouseAndWait("a=1")
		if got := h.room("default", "a").GetAnnotations()[declaredIn]; got != "children-of.again,children-of.ensure" {
			t.Errorf("the child names both records: got %q", got)
		}
		h.changeRooms("a=1", "c=1")
		before := h.room("default", "a").GetResourceVersion()
		h.changeRooms("a=1", "c=1", "b=1")
		if now := h.room("default", "a").GetResourceVersion(); now != before {
			t.Errorf("an unchanged child is not written: got %v", writes(way))
		}
		way.DrainRequests()
		time.Sleep(time.Hour)
		if got := writes(way); len(got) > 0 {
			t.Errorf("the handlers do not overwrite each other's child: got %v", got)
		}
	})
}

// applyAsFormerVersion applies the children as the former version of this package did: without the name of the record,
// and with trust in the UIDs in the record, whose format is the same.
func (h ensureFixture) applyAsFormerVersion(rooms ...string) {
	h.t.Helper()
	listed := []string{}
	for _, room := range rooms {
		namespace, name, _ := strings.Cut(room, "/")
		child := newRoom()
		child.SetNamespace(namespace)
		child.SetName(name)
		child.Object["data"] = map[string]any{"value": "1"}
		child.SetLabels(map[string]string{"street": "high", parentLabel: string(h.house().GetUID())})
		if namespace == "default" {
			child.SetOwnerReferences([]metav1.OwnerReference{{
				APIVersion: "test.example.org/v1", Kind: "House", Name: "home", UID: h.house().GetUID(),
			}})
		}
		if err := h.directClient.Apply(h.t.Context(), client.ApplyConfigurationFromUnstructured(child),
			client.FieldOwner("test.example.org"), client.ForceOwnership); err != nil {
			h.t.Fatal(err)
		}
		listed = append(listed, fmt.Sprintf(`"v1/ConfigMap/%s":"%s"`, room, child.GetUID()))
	}
	slices.Sort(listed)
	h.api.Edit(houses, "default", "home", func(house map[string]any) {
		one := &unstructured.Unstructured{Object: house}
		annotations := one.GetAnnotations()
		annotations[houseRecord] = fmt.Sprintf(`{"parent":"%s","children":{%s}}`, one.GetUID(),
			strings.Join(listed, ","))
		one.SetAnnotations(annotations)
	})
}

// TestEnsureTakesTurnsWithTheFormerVersion shows that the former version and this one can alternate on the same
// objects: no child is created twice or lost, and each version prunes the children that the other one has declared.
func TestEnsureTakesTurnsWithTheFormerVersion(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		_, stop := h.runEnsure()
		h.createHouseAndWait("a=1", "b=1", "yard/d=1")
		record := h.house().GetAnnotations()[houseRecord]
		made := h.room("default", "a").GetUID()
		stop()
		h.applyAsFormerVersion("default/a", "default/b", "yard/d")
		if got := h.house().GetAnnotations()[houseRecord]; got != record {
			t.Errorf("the record has the format of the former version: got %s, want %s", record, got)
		}
		h.applyAsFormerVersion("default/a", "default/b", "default/c", "yard/d", "yard/well") // a change handled before
		_, stop = h.runEnsure()
		h.changeRooms("a=1", "b=1", "yard/d=1")
		h.requireRooms("children that the former version has declared are pruned", "default/a", "default/b", "yard/d")
		stop()
		h.applyAsFormerVersion("default/a", "yard/d")
		_, stop = h.runEnsure()
		h.changeRooms("a=1", "b=1")
		h.requireRooms("declared children are kept", "default/a", "default/b")
		if now := h.room("default", "a").GetUID(); now != made {
			t.Errorf("the child is still the same object: got %s, want %s", now, made)
		}
		stop()
	})
}
