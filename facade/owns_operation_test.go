package kopf_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestOwnsWithoutTheRight shows that an operator without the permission to list or watch children logs one line with
// the place in the code, and handles everything else. When the permission is given, existing children are reported as
// listed.
func TestOwnsWithoutTheRight(t *testing.T) {
	withConditionFixture(t, nil, func(e conditionFixture) {
		var told childCalls
		var forbidden atomic.Bool
		begin := func(s houseSel) {
			s.On("ensure", nonDeleteReasons, func(ctx context.Context, c *dynamicChange) error {
				room := newRoom()
				room.SetName("bath")
				return c.Ensure(ctx, room)
			})
			s.Owns(newRoom())
			kopf.OnChild(s, "room", func(
				_ context.Context, ev *kopf.ChildEvent[*kopf.Unstructured, *kopf.Unstructured],
			) error {
				told.note("%s%s", ev.Type, ev.Child.GetName())
				return nil
			})
		}
		op := kopf.New("test.example.org")
		begin(kopf.ForResource(op, e.apiVersion(), e.houses.Plural))
		way, log := e.api.Connect(), &lines{}
		way.Before = func(_ context.Context, r memapi.Request) error {
			reading := r.Verb == "list" || r.Verb == "watch"
			if forbidden.Load() && reading && r.Resource.Plural == "configmaps" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no rule"))
			}
			return nil
		}
		forbidden.Store(true)
		stop := e.serve(op, way, log)
		defer stop()
		e.createHouse(map[string]any{"size": int64(1)})
		time.Sleep(10 * time.Minute)
		e.settle()
		said := log.with("Cannot list or watch a resource")
		if len(said) != 1 || !strings.Contains(said[0], "owns_operation_test.go:") || !strings.Contains(
			said[0], `"kind"="ConfigMap"`) {
			t.Errorf("without the permission, want one line with the place and the kind: %q", said)
		}
		if e.api.Object(settings, "default", "bath") == nil {
			t.Error("without the permission, change handlers must be called")
		}
		told.want(t, "without the permission, children are not reported")
		e.api.Edit(settings, "default", "bath", func(room map[string]any) { room["data"] = map[string]any{"a": "a"} })
		forbidden.Store(false)
		time.Sleep(5 * time.Minute)
		e.settle()
		told.want(t, "with the permission, existing children are reported", "bath")
		e.api.Edit(settings, "default", "bath", func(room map[string]any) {
			room["data"] = map[string]any{"a": "b"}
		})
		e.settle()
		told.want(t, "an edit of a child without a Go type is reported", "MODIFIEDbath")
	})
}

// TestOwnsInAPause shows that a paused operator does not watch children. After the pause, it reports all existing
// children. It repairs them only after the next call of the handler that declares them, because another operator may
// have declared others.
func TestOwnsInAPause(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		h.api.Install(peerings)
		h.api.Put(peerings, map[string]any{"metadata": map[string]any{"name": "shared"}})
		var told childCalls
		way, stop := h.runWith(kopf.Settings{Peering: kopf.PeeringSettings{Name: "shared", Identity: "me"}}, func(
			s houseSel,
		) {
			s.On("ensure", nonDeleteReasons, ensure)
			s.Owns(&corev1.ConfigMap{})
			kopf.OnChild(s, "room", told.recordEvent)
		})
		h.createHouseAndWait("bath=1")
		told.want(t, "before the pause, a child made by Ensure is not reported")
		(&sharedPeering{t: t, server: h.api}).addPeer(3600)
		h.settle()
		way.DrainRequests()
		h.editRoom("default", "bath", "2")
		h.createOwnedRoom("guest", "1")
		if got := watchesOf(way.DrainRequests()); len(got) > 0 {
			t.Errorf("a paused operator must not watch children: %v", got)
		}
		told.want(t, "a paused operator does not report children")
		time.Sleep(time.Hour)
		h.settle()
		told.want(t, "after the pause, existing children are reported", "LISTED default/bath=2 of home",
			"LISTED default/guest=1 of home")
		h.changeRooms("bath=3")
		h.editRoom("default", "bath", "4")
		if got, _, _ := nested(h.room("default", "bath"), "data", "value"); got != "3" {
			t.Errorf("after the next call of the handler, the edit must be repaired: the child has %q", got)
		}
		stop()
	})
}

// watchesOf returns the requests that list or watch children.
func watchesOf(all []memapi.Request) (found []memapi.Request) {
	for _, r := range all {
		if (r.Verb == "list" || r.Verb == "watch") && r.Resource.Plural == "configmaps" {
			found = append(found, r)
		}
	}
	return found
}

// TestRepairsAreReported shows that each repair is reported by a Kubernetes event about the owner, and counted. An edit
// of an undeclared field is not repaired.
func TestRepairsAreReported(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		way, stop := h.run(func(s houseSel) {
			s.On("ensure", nonDeleteReasons, ensure)
			s.Owns(&corev1.ConfigMap{})
		})
		h.createHouseAndWait("bath=1")
		before := repairCount(t)
		way.DrainRequests()
		h.editRoom("default", "bath", "2")
		h.deleteRoom("default", "bath")
		h.api.Edit(settings, "default", "bath", func(room map[string]any) { room["foreign"] = "stays" })
		h.settle()
		var posted []string
		for _, r := range way.DrainRequests() {
			if r.Resource.Plural == "events" && strings.Contains(string(r.Body), "ChildRepaired") {
				posted = append(posted, string(r.Body))
			}
		}
		if len(posted) != 2 || !strings.Contains(posted[0], "was changed") || !strings.Contains(
			posted[1], "was deleted") || !strings.Contains(posted[0], string(h.house().GetUID())) {
			t.Errorf("want an event about the owner for each of the two repairs: %q", posted)
		}
		if n := repairCount(t) - before; n != 2 {
			t.Errorf("the metric counts %v repairs, want 2", n)
		}
		stop()
	})
}

// repairCount returns the number of repairs, by the metric of all houses.
func repairCount(t *testing.T) (total float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "kopf_children_repaired_total" {
			continue
		}
		for _, one := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range one.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			isHouse := labels["kind"] == "House.test.example.org" && labels["child"] == "ConfigMap"
			if labels["operator"] == "test.example.org" && isHouse {
				total += one.GetCounter().GetValue()
			}
		}
	}
	return total
}
