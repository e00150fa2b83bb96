package kopf_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// tamperer is an operator with functions of all families. If it is active, each function records its input, and then
// changes everything that it can reach by reflection.
type tamperer struct {
	t        *testing.T
	isActive bool
	server   *memapi.Server
	user     client.Client
	index    *kopf.Index[string, *Widget]
	trees    *kopf.Index[string, map[string]any]

	mu    sync.Mutex
	notes []string
}

var widgetResource = memapi.Resource{Group: "example.org", Version: "v1", Kind: "Widget", Plural: "widgets",
	Namespaced: true}

// register registers typed functions of all families, and unstructured ones of some.
func (v *tamperer) register(op *kopf.Operator) {
	widgets := kopf.For(op, &Widget{}).When(func(_ context.Context, w *Widget) bool {
		seen := w.Spec.Owner == "ann"
		v.tamper(w)
		return seen
	}).When(func(_ context.Context, w *Widget) bool { return w.Spec.Owner == "ann" }).
		WithLabel("l", func(value string, _ bool) bool { return value != tampered })
	v.index = kopf.NewIndex(widgets, "index", func(_ context.Context, w *Widget) (map[string]*Widget, error) {
		return map[string]*Widget{"all": w}, nil
	})
	v.trees = kopf.NewIndex(widgets, "trees", func(_ context.Context, w *Widget) (map[string]map[string]any, error) {
		return map[string]map[string]any{
			"all": {"tags": []any{w.Spec.Tags[0], map[string]any{"deep": w.Spec.Tags}}},
		}, nil
	})
	changed := kopf.WhenChange(func(_ context.Context, c *Change) bool {
		seen := c.Object.Spec.Owner == "ann"
		v.tamper(c)
		return seen
	})
	widgets.On("change", []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate, kopf.ReasonDelete}, v.change, changed)
	fine := func(value any, _ bool) bool {
		tree, isMapping := value.(map[string]any)
		seen := value == nil || isMapping && tree["k"] != tampered
		v.tamper(value)
		return seen
	}
	widgets.OnField("field", "spec.extra", v.change, kopf.OldValue(fine), kopf.NewValue(fine))
	widgets.OnUpdate("valued", v.change, kopf.InField("spec.extra"), kopf.Value(fine))
	widgets.OnUpdate("valued-again", v.change, kopf.InField("spec.extra"), kopf.Value(fine))
	widgets.OnEvent("event", func(_ context.Context, e *kopf.WatchEvent[*Widget]) error {
		v.note("event", e.Type, e.Object.Spec, e.Object.Labels)
		v.tamper(e)
		return nil
	}, kopf.InField("spec.extra"), kopf.Value(fine))
	background := func(_ context.Context, r *Run) error {
		object := r.Latest()
		v.note(r.ID, object.Spec, object.Labels)
		r.Patch(func(w *Widget) { v.tamper(&w.Spec.Tags); w.Spec.Tags = r.Latest().Spec.Tags })
		v.tamper(object, r)
		return nil
	}
	widgets.Daemon("daemon", background)
	widgets.Timer("timer", time.Minute, background,
		kopf.InitialDelay(func(object *unstructured.Unstructured) time.Duration {
			v.tamper(object)
			return time.Second
		}))
	chosen := kopf.ForResourceFunc(op, func(r kopf.Resource) bool {
		seen := r.Plural == "widgets" && slices.Contains(r.Verbs, "watch")
		v.tamper(&r)
		return seen
	}).When(func(_ context.Context, object *rawObject) bool {
		v.tamper(object)
		return true
	})
	chosen.On("raw", []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate}, func(_ context.Context, c *Raw) error {
		v.note(c.ID, c.Reason, c.Object.Object["spec"], c.Old.Object["spec"], c.Diff)
		v.tamper(c)
		return nil
	})
	chosen.OnEvent("raw-event", func(_ context.Context, e *kopf.WatchEvent[*rawObject]) error {
		v.note(e.ID, e.Type, e.Object.Object["spec"])
		v.tamper(e)
		return nil
	})
}

// change is a change handler with sub-handlers.
func (v *tamperer) change(_ context.Context, c *Change) error {
	v.note(c.ID, c.Reason, c.Object.Spec, c.Old.Spec, c.Diff, specs(v.index.Get("all")), v.trees.Get("all"))
	v.tamper(v.index.Get("all"), v.trees.Get("all"))
	for found := range v.index.Values("all") {
		v.tamper(found)
	}
	var patched []*Widget
	c.Patch(func(w *Widget) {
		w.Status.Host = "here"
		patched = append(patched, w)
	})
	result := map[string]any{"list": []any{"a"}}
	c.SetResult(result)
	if held, err := kopf.Result[map[string]any](c, "change"); err == nil {
		v.note(c.ID+" result", held)
		v.tamper(held)
	}
	if c.ID == "field/spec.extra" {
		before, after := kopf.FieldChange[any](c)
		v.note("field", before, after)
		v.tamper(before, after)
	}
	if c.ID == "change" {
		for _, id := range []string{"one", "two"} {
			c.Sub(id, func(_ context.Context, sub *Change) error {
				v.note(sub.ID, sub.Object.Spec, sub.Old.Spec, sub.Diff)
				v.tamper(sub)
				return nil
			})
		}
	}
	v.tamper(patched, result, c)
	return nil
}

func specs(widgets []*Widget) (all []WidgetSpec) {
	for _, w := range widgets {
		all = append(all, w.Spec)
	}
	return all
}

// runObjectLife runs the operator through one life of an object: creation, edits and deletion.
func (v *tamperer) runObjectLife(own bool) {
	v.server = memapi.New()
	v.server.Install(widgetResource)
	var err error
	if v.user, err = client.New(memapi.Config(v.server), client.Options{}); err != nil {
		v.t.Fatal(err)
	}
	var settings kopf.Settings
	if own {
		settings.Persistence = kopf.PersistenceSettings{
			DiffbaseStorage: tamperingDiffbase{v, diffbase.Annotations{Prefix: "test.example.org"}},
			ProgressStorage: tamperingProgress{v, progress.Annotations{Prefix: "test.example.org"}},
		}
	}
	op := kopf.New("test.example.org", settings)
	v.register(op)
	stop := operate(v.t, v.server, op, logr.Discard())
	defer stop()
	time.Sleep(5 * time.Second)
	object := &unstructured.Unstructured{Object: body(map[string]any{
		"owner": "ann", "tags": []any{"b", "a"}, "extra": map[string]any{"k": "v"}, "parts": []any{
			map[string]any{"name": "p", "notes": []any{"n"}},
		},
		"unknown": map[string]any{"list": []any{"x", "y"}}, "weight": "1",
	})}
	object.SetNamespace("default")
	object.SetUID("")
	object.SetResourceVersion("")
	object.SetLabels(map[string]string{"l": "m"})
	if err := v.user.Create(context.Background(), object); err != nil {
		v.t.Fatal(err)
	}
	v.settle("creation")
	v.edit(`{"spec":{"tags":["a","b"]}}`)
	v.edit(`{"spec":{"tags":["b","a"],"extra":{"k":"w"}}}`)
	v.edit(`{"metadata":{"labels":{"l":"n"}},"spec":{"unknown":{"list":["y","x"]}}}`)
	v.edit(`{"spec":{"extra":null}}`)
	if err := v.user.Delete(context.Background(), object); err != nil {
		v.t.Fatal(err)
	}
	v.settle("deletion")
}

// TestHandlersAreIsolated shows that a function that changes its input does not affect other functions, the
// stored configuration or the object.
func TestHandlersAreIsolated(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	for _, own := range []bool{false, true} {
		t.Run(fmt.Sprintf("own storages %t", own), func(t *testing.T) {
			var notes [2][]string
			for i, active := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					v := &tamperer{t: t, isActive: active}
					v.runObjectLife(own)
					slices.Sort(v.notes)
					notes[i] = v.notes
				})
			}
			if len(notes[0]) < 30 {
				t.Fatalf("fewer than 30 inputs were recorded: %v", notes[0])
			}
			if d := cmp.Diff(notes[0], notes[1]); d != "" {
				t.Errorf("tampering must not change the inputs of other functions: -without, +with tampering:\n%s", d)
			}
		})
	}
}
