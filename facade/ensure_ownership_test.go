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

// runTwo has two handlers, each with a set of its own. The second one is called at creations alone.
func (h household) runTwo() func() {
	_, stop := h.run(func(s houseSel) {
		s.On("ensure", always, ensure)
		s.OnCreate("cellar", func(ctx context.Context, c *houseChange) error {
			return c.Ensure(ctx, rooms(house("wine=1", "yard/well=1", "b=1"))...)
		})
	})
	return stop
}

// dropRecords is another writer who removes all records of children.
func (h household) dropRecords() {
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

func (h household) requireRooms(when string, want ...string) {
	h.t.Helper()
	var got []string
	for _, room := range []string{
		"default/a", "default/b", "default/c", "default/guest", "default/wine", "yard/d", "yard/well",
	} {
		namespace, name, _ := strings.Cut(room, "/")
		if h.room(namespace, name) != nil {
			got = append(got, room)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		h.t.Errorf("%s: -want, +got:\n%s", when, d)
	}
}

// A record that was removed while the process runs is restored from what this process has applied, in all namespaces.
func TestEnsureRestoresARecordOfThisProcess(t *testing.T) {
	inHousehold(t, func(h household) {
		_, stop := h.runEnsure()
		defer stop()
		h.build("a=1", "b=1", "yard/d=1")
		h.dropRecords()
		h.rebuild("a=1", "c=1", "yard/d=1")
		h.requireRooms("the dropped child is pruned", "default/a", "default/c", "yard/d")
		if record := h.house().GetAnnotations()[houseRecord]; !strings.Contains(record, "yard/d") {
			t.Errorf("the record is not restored: %q", record)
		}
		h.dropRecords()
		h.rebuild("a=1")
		h.requireRooms("the child of another namespace is pruned", "default/a")
		h.rebuild("a=1", "yard/d=1")
		h.dropRecords()
		h.settle()
		h.api.Delete(houses, "default", "home")
		h.settle()
		if h.api.Object(houses, "default", "home") != nil || h.room("yard", "d") != nil {
			t.Errorf("the object and its child are not deleted: %v, %v", h.house(), h.room("yard", "d"))
		}
	})
}

// A record that was removed while no process remembered it is rebuilt from the labelled objects that name it, of the
// kinds and in the namespaces that the handler declares into. Children of other handlers, and objects that others have
// labelled, stay.
func TestEnsureRebuildsALostRecord(t *testing.T) {
	inHousehold(t, func(h household) {
		stop := h.runTwo()
		h.build("a=1", "b=1", "c=1", "yard/d=1")
		stop()
		h.put("guest", "theirs")
		labels := map[string]string{parentLabel: string(h.house().GetUID())}
		h.api.Edit(settings, "default", "guest", func(room map[string]any) {
			(&unstructured.Unstructured{Object: room}).SetLabels(labels)
		})
		h.dropRecords()
		stop = h.runTwo()
		h.rebuild("a=1")
		h.requireRooms("of the namespaces declared into, only what names this record alone is pruned",
			"default/a", "default/b", "default/guest", "default/wine", "yard/d", "yard/well")
		if got := h.room("default", "a").GetAnnotations()[declaredIn]; got != "children-of.ensure" {
			t.Errorf("the child names the record %q", got)
		}
		stop()
	})
}

// Two handlers that declare the same child name both records in it, and write it no more once that is so.
func TestEnsureNamesAllRecordsOfAChild(t *testing.T) {
	inHousehold(t, func(h household) {
		way, stop := h.run(func(s houseSel) {
			s.On("ensure", always, ensure)
			s.On("again", always, ensure)
			s.Owns(bath())
		})
		defer stop()
		h.build("a=1")
		if got := h.room("default", "a").GetAnnotations()[declaredIn]; got != "children-of.again,children-of.ensure" {
			t.Errorf("the child names the records %q", got)
		}
		h.rebuild("a=1", "c=1")
		before := h.room("default", "a").GetResourceVersion()
		h.rebuild("a=1", "c=1", "b=1")
		if now := h.room("default", "a").GetResourceVersion(); now != before {
			t.Errorf("a child that does not change was written: %v", writes(way))
		}
		way.Drain()
		time.Sleep(time.Hour)
		if got := writes(way); len(got) > 0 {
			t.Errorf("the handlers repair each other's child: %v", got)
		}
	})
}

// asBefore is what the former version does to the children: it applies them without the name of the record, and trusts
// the uids in the record, whose form is the same.
func (h household) asBefore(rooms ...string) {
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
		if err := h.people.Apply(h.t.Context(), client.ApplyConfigurationFromUnstructured(child),
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

// The former version and this one take turns over the same objects: no child is made twice, none is lost, and what
// either of them has declared, the other one prunes.
func TestEnsureTakesTurnsWithTheFormerVersion(t *testing.T) {
	inHousehold(t, func(h household) {
		_, stop := h.runEnsure()
		h.build("a=1", "b=1", "yard/d=1")
		record := h.house().GetAnnotations()[houseRecord]
		made := h.room("default", "a").GetUID()
		stop()
		h.asBefore("default/a", "default/b", "yard/d")
		if got := h.house().GetAnnotations()[houseRecord]; got != record {
			t.Errorf("the record has another form than before: got %s, want %s", record, got)
		}
		h.asBefore("default/a", "default/b", "default/c", "yard/d", "yard/well") // of a change that it has handled
		_, stop = h.runEnsure()
		h.rebuild("a=1", "b=1", "yard/d=1")
		h.requireRooms("what the former version has declared is pruned", "default/a", "default/b", "yard/d")
		stop()
		h.asBefore("default/a", "yard/d")
		_, stop = h.runEnsure()
		h.rebuild("a=1", "b=1")
		h.requireRooms("nothing is lost", "default/a", "default/b")
		if now := h.room("default", "a").GetUID(); now != made {
			t.Errorf("the child is another object: got %s, want %s", now, made)
		}
		stop()
	})
}
