package forgery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

var configMaps = memapi.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}

type childEvent = kopf.ChildEvent[*unstructured.Unstructured, *unstructured.Unstructured]

// foreignChild is an object of another client. The operator declares a child of its name, unless it is only listed.
type foreignChild struct {
	namespace, name string
	isOwned         bool // another controller has made it for the parent
}

var foreignChildren = []foreignChild{
	{"default", "foreign", false}, {"elsewhere", "foreign", false}, {"default", "backup", true},
}

// startDeclaring runs an operator whose handler declares what the spec names, beside a child of its own.
func (w *harness) startDeclaring(settings kopf.Settings, rule func(child any) any) (stop func()) {
	op := kopf.New(operatorName, settings)
	s := kopf.ForResource(op, gvk.GroupVersion().String(), "targets")
	s.On("ensure", kopf.CreateUpdateResume(), func(ctx context.Context, c *change) error {
		declared := []any{configMap("default", "honest")}
		for _, name := range kopf.GetFieldOr(c.Object, "spec.children", []string(nil)) {
			namespace, name, _ := strings.Cut(name, "/")
			declared = append(declared, rule(configMap(namespace, name)))
		}
		return c.Ensure(ctx, declared...)
	}, kopf.Backoff(time.Minute))
	s.Owns(configMap("", ""))
	kopf.OnChild(s, "child", func(_ context.Context, e *childEvent) error {
		if e.Child.GetNamespace() != "default" || e.Child.GetName() == "foreign" {
			w.t.Errorf("OnChild was called for %s/%s", e.Child.GetNamespace(), e.Child.GetName())
		}
		return nil
	})
	r := facadetest.Start(w.t, op, facadetest.Against(memapi.Config(w.server)))
	return func() {
		if err := r.Stop(); err != nil {
			w.t.Errorf("the operator ended: %v", err)
		}
	}
}

func configMap(namespace, name string) *unstructured.Unstructured {
	one := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"of": "the operator"},
	}}
	one.SetNamespace(namespace)
	one.SetName(name)
	return one
}

// createForeign creates the foreign objects.
func (w *harness) createForeign(parent types.UID) map[foreignChild]*unstructured.Unstructured {
	all := map[foreignChild]*unstructured.Unstructured{}
	for _, one := range foreignChildren {
		object := configMap(one.namespace, one.name)
		object.Object["data"] = map[string]any{"of": "somebody else"}
		object.Object["status"] = map[string]any{"phase": "Succeeded"}
		if one.isOwned {
			object.SetOwnerReferences([]metav1.OwnerReference{{
				APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: "mine", UID: parent,
			}})
		}
		if err := w.client.Create(context.Background(), object); err != nil {
			w.t.Fatalf("creating %s/%s: %v", one.namespace, one.name, err)
		}
		all[one] = object
	}
	return all
}

// annotate is all that the tenant may do: he writes records of children onto his object.
func (w *harness) annotate(prefix string, parent types.UID, listed map[foreignChild]*unstructured.Unstructured) {
	children, runs := map[string]any{}, map[string]any{}
	for one, object := range listed {
		name := fmt.Sprintf("v1/ConfigMap/%s/%s", one.namespace, one.name)
		children[name], runs[name] = object.GetUID(), "forged succeeded"
	}
	record, err := json.Marshal(map[string]any{
		"parent": parent, "children": children, "retained": children, "runs": runs,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if !w.patch("mine", map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		prefix + "/children-of.ensure": string(record), prefix + "/children-of.other": string(record),
		prefix + "/children-of-run.tick": string(record),
	}}}, false) {
		w.t.Fatal("the tenant may annotate his object")
	}
}

// declare changes what the handler declares.
func (w *harness) declare(children ...string) {
	if !w.patch("mine", map[string]any{"spec": map[string]any{"children": children}}, false) {
		w.t.Fatal("the spec was not changed")
	}
	time.Sleep(10 * time.Minute)
}

// requireUntouched requires that the foreign objects have not changed.
func (w *harness) requireUntouched(when string, foreign map[foreignChild]*unstructured.Unstructured) {
	w.t.Helper()
	for one, before := range foreign {
		now := w.server.Object(configMaps, one.namespace, one.name)
		if now == nil {
			w.t.Errorf("%s: the foreign object %s/%s was deleted", when, one.namespace, one.name)
			continue
		}
		if got := (&unstructured.Unstructured{Object: now}).GetResourceVersion(); got != before.GetResourceVersion() {
			w.t.Errorf("%s: the foreign object %s/%s was changed: %v", when, one.namespace, one.name, now)
		}
	}
}

// TestForgedChildrenRecord is a tenant who may only annotate his object. The operator may write the foreign objects
// that he lists, in his namespace and in another one; it neither overwrites, adopts nor deletes them, nor calls a
// handler for them.
func TestForgedChildrenRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	plain := func(child any) any { return child }
	for name, tc := range map[string]struct {
		settings kopf.Settings
		rule     func(child any) any
	}{
		"Own": {rule: plain}, "AsKopf": {kopf.AsKopf(), plain},
		"Once": {rule: kopf.Once}, "UntilDone": {rule: kopf.UntilDone},
		"Retain": {rule: func(child any) any { return kopf.Retain(child, kopf.AdoptFormer()) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newHarness(t, true)
				prefix := operatorName
				if name == "AsKopf" {
					prefix = "kopf.zalando.org"
				}
				w.create("mine")
				parent := w.object("mine").GetUID()
				listed := w.createForeign(parent)
				w.annotate(prefix, parent, listed) // before any process has seen the object
				stop := w.startDeclaring(tc.settings, tc.rule)
				time.Sleep(10 * time.Minute)
				w.requireUntouched("pruning undeclared objects", listed)
				w.annotate(prefix, parent, listed)
				w.declare("default/foreign", "elsewhere/foreign")
				w.requireUntouched("applying in a process that knows the object", listed)
				w.annotate(prefix, parent, listed)
				stop()
				stop = w.startDeclaring(tc.settings, tc.rule)
				time.Sleep(10 * time.Minute)
				w.requireUntouched("applying in a process that begins", listed)
				w.declare()
				w.requireUntouched("pruning declared objects", listed)
				if w.server.Object(configMaps, "default", "honest") == nil {
					t.Error("the child of the operator is missing")
				}
				w.annotate(prefix, parent, listed)
				delete(listed, foreignChildren[2]) // which the garbage collector deletes with its owner
				w.remove("mine")
				time.Sleep(10 * time.Minute)
				if w.object("mine") != nil {
					t.Error("the tenant's object is not deleted")
				}
				w.requireUntouched("releasing the children of the deleted object", listed)
				stop()
			})
		})
	}
}
