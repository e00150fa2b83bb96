package kopf_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/draining"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// drained is a cluster in which an operator has stored all that it can store.
type drained struct {
	t      *testing.T
	api    *memapi.Server
	given  kopf.Settings
	before map[string]any // the objects before the operator started
	calls  *journal
}

// newDrainOperator returns the operator of the tests: its change handlers have succeeded, have failed for now, and have
// sub-handlers and children; its delete handler and its timer need the finalizer.
func newDrainOperator(given kopf.Settings, calls *journal) *kopf.Operator {
	given.Peering.Standalone = true
	return newDrainOperatorWith(given, calls)
}

// newDrainOperatorWith is like newDrainOperator, with peering.
func newDrainOperatorWith(given kopf.Settings, calls *journal) *kopf.Operator {
	given.AddToScheme = runtime.SchemeBuilder{corev1.AddToScheme}
	op := kopf.New("drain.example.com", given)
	s := kopf.ForResource(op, "test.example.org/v1", "houses")
	s.OnCreate("children", func(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
		child := func(name string) *unstructured.Unstructured {
			one := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
			one.SetName(c.Object.GetName() + "-" + name)
			return one
		}
		return c.Ensure(ctx, child("child"), kopf.Retain(child("retained")))
	})
	s.OnUpdate("succeeds", func(context.Context, *kopf.Change[*kopf.Unstructured]) error { return nil })
	s.OnUpdate("waits/for-it", func(_ context.Context, c *kopf.Change[*kopf.Unstructured]) error {
		c.Sub("fast", func(context.Context, *kopf.Change[*kopf.Unstructured]) error { return nil })
		c.Sub("slow", func(context.Context, *kopf.Change[*kopf.Unstructured]) error {
			return kopf.Temporary(errors.New("not yet"), 1000*time.Hour)
		})
		return nil
	})
	s.OnDelete("deletes", func(context.Context, *kopf.Change[*kopf.Unstructured]) error {
		calls.add("deletes")
		return kopf.Temporary(errors.New("not yet"), 1000*time.Hour)
	})
	s.Timer("ticks", time.Hour, func(context.Context, *kopf.Task[*kopf.Unstructured]) error {
		calls.add("ticks")
		return nil
	})
	return op
}

// crowdedHouse returns an object with things of other operators and of users.
func crowdedHouse(name string) map[string]any {
	return map[string]any{
		"apiVersion": "test.example.org/v1", "kind": "House", "metadata": map[string]any{
			"name": name, "namespace": "default", "finalizers": []any{"other.example.com/finalizer"},
			"labels":      map[string]any{"street": "high"},
			"annotations": map[string]any{"other.example.com/create": `{"started":"2020-01-01T00:00:00Z"}`},
		}, "spec": map[string]any{"size": int64(1)},
	}
}

// plainHouse returns an object that only has a name.
func plainHouse(name string) map[string]any {
	return map[string]any{
		"apiVersion": "test.example.org/v1", "kind": "House",
		"metadata": map[string]any{"name": name, "namespace": "default"},
	}
}

// dump returns all objects by kind and name, without the fields of the API server. Children are left out.
func (d *drained) dump() map[string]any {
	all := map[string]any{}
	for _, object := range d.api.Objects() {
		one := (&unstructured.Unstructured{Object: object}).DeepCopy()
		if kind := one.GetKind(); kind == "Event" || kind == "ConfigMap" {
			continue
		}
		one.SetManagedFields(nil)
		one.SetResourceVersion("")
		one.SetGeneration(0)
		all[one.GetKind()+" "+one.GetName()] = one.Object
	}
	return all
}

// requireNothing checks that no object has anything of the operator, and that the children exist.
func (d *drained) requireNothing(things ...string) {
	d.t.Helper()
	if diff := cmp.Diff(d.before, d.dump()); diff != "" {
		d.t.Errorf("the objects are as before the operator (-want, +got):\n%s", diff)
	}
	children := 0
	for _, object := range d.api.Objects() {
		one := (&unstructured.Unstructured{Object: object}).DeepCopy()
		if one.GetKind() == "Event" {
			continue
		}
		one.SetManagedFields(nil)
		text, err := json.Marshal(one.Object)
		if err != nil {
			d.t.Fatal(err)
		}
		for _, thing := range things {
			if strings.Contains(string(text), thing) {
				d.t.Errorf("nothing of the operator is left: got %s", text)
			}
		}
		if one.GetKind() == "ConfigMap" {
			children++
			owners := len(one.GetOwnerReferences())
			if retained := strings.HasSuffix(one.GetName(), "-retained"); retained == (owners > 0) {
				d.t.Errorf("the owner references of %s stay: got %d", one.GetName(), owners)
			}
		}
	}
	if children == 0 {
		d.t.Error("the children stay: got none")
	}
}

// inDrained runs the operator, stops it in the middle of an update, and calls the function, on virtual time.
func inDrained(t *testing.T, given kopf.Settings, play func(d *drained)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := &drained{t: t, api: memapi.New(), given: given, calls: &journal{}}
		d.api.Install(houses)
		people, err := memapi.NewClient(d.api, houses)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range []map[string]any{crowdedHouse("one"), plainHouse("two")} {
			if err := people.Create(t.Context(), &unstructured.Unstructured{Object: one}); err != nil {
				t.Fatal(err)
			}
		}
		d.api.Edit(houses, "default", "one", func(house map[string]any) {
			house["status"] = map[string]any{"others": "value"}
		})
		d.before = d.dump()
		r := facadetest.Start(t, newDrainOperator(given, d.calls), facadetest.Against(memapi.Config(d.api)))
		r.Ready()
		time.Sleep(time.Minute)
		for _, name := range []string{"one", "two"} {
			d.api.Edit(houses, "default", name, func(house map[string]any) {
				house["spec"] = map[string]any{"size": int64(2)}
			})
		}
		time.Sleep(time.Minute)
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
		for name := range d.before {
			if object, ok := d.before[name].(map[string]any); ok && object["kind"] == "House" {
				object["spec"] = map[string]any{"size": int64(2)}
			}
		}
		if cmp.Equal(d.before, d.dump()) {
			t.Fatal("the operator has stored nothing")
		}
		d.calls = &journal{}
		play(d)
	})
}

// drain runs a drain, and returns its report.
func (d *drained) drain(way *memapi.Connection, change func(one *draining.Drain)) *draining.DrainReport {
	d.t.Helper()
	report, err := d.tryDrain(way, change)
	if err != nil {
		d.t.Fatal(err)
	}
	return report
}

func (d *drained) tryDrain(way *memapi.Connection, change func(one *draining.Drain)) (*draining.DrainReport, error) {
	d.t.Helper()
	stored, err := kopf.StoredThings(newDrainOperator(d.given, d.calls))
	if err != nil {
		d.t.Fatal(err)
	}
	one := &draining.Drain{StoredState: stored, Confirm: func(string) error { return nil }}
	if change != nil {
		change(one)
	}
	if way == nil {
		way = d.api.Connect()
	}
	return one.Run(d.t.Context(), memapi.Config(way))
}

// drainSettings are the storages with which an operator can run.
func drainSettings() map[string]kopf.Settings {
	return map[string]kopf.Settings{
		"defaults": {},
		"prefix":   {Persistence: kopf.PersistenceSettings{AnnotationPrefix: "memory.drain.example.com"}},
		"status": {Persistence: kopf.PersistenceSettings{
			DiffbaseStorage: diffbase.Status{Name: "drain-example-com"},
			ProgressStorage: progress.Status{Name: "drain-example-com"},
		}},
		"several": {Persistence: kopf.PersistenceSettings{
			DiffbaseStorage: diffbase.Multi{
				diffbase.Annotations{Prefix: "drain.example.com.b"}, diffbase.Status{Name: "drain.example.com"},
			},
			ProgressStorage: progress.Multi{
				progress.Annotations{Prefix: "drain.example.com.c"}, progress.Status{Name: "drain.example.com"},
			},
		}},
		"AsKopf": kopf.AsKopf(),
	}
}

// TestDrain shows that a drain restores all objects to their state before the operator, except for what users have
// changed, whatever its storages are. No handler is called. A check lists everything and changes nothing.
func TestDrain(t *testing.T) {
	for name, given := range drainSettings() {
		t.Run(name, func(t *testing.T) {
			inDrained(t, given, func(d *drained) {
				shared := func(one *draining.Drain) { one.SharedToo = name == "AsKopf" }
				before := d.dump()
				report := d.drain(nil, func(one *draining.Drain) { shared(one); one.Check = true })
				if len(report.Items) < 4 {
					t.Errorf("a check lists all objects and children: got %v", report.Items)
				}
				if diff := cmp.Diff(before, d.dump()); diff != "" {
					t.Errorf("a check changes nothing (-want, +got):\n%s", diff)
				}
				if report := d.drain(nil, shared); len(report.Items) > 0 {
					t.Errorf("nothing is left: got %v", report.Items)
				}
				d.requireNothing("drain.example.com", "drain-example-com", "kopf.zalando.org")
				report = d.drain(nil, func(one *draining.Drain) { shared(one); one.Check = true })
				if len(report.Items) > 0 {
					t.Errorf("a check after a drain finds nothing: got %v", report.Items)
				}
				if got := d.calls.count(); got > 0 {
					t.Errorf("no handler is called: got %d calls", got)
				}
			})
		})
	}
}
