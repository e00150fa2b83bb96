package kopf_test

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestEnsureAppliesTheOthersBesideABadChild shows that an invalid child does not prevent the other children from
// being applied, but prevents pruning, as the set is incomplete. The error has the index of the child among all
// children of the call, including those in lists.
func TestEnsureAppliesTheOthersBesideABadChild(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	room := func(text string) any { return rooms(house(text))[0] }
	nameless := &corev1.ConfigMap{}
	cases := map[string]struct {
		invalidChild any
		want         []string
	}{
		"nil":           {nil, []string{"child 2: it is nil"}},
		"nil of a type": {(*corev1.ConfigMap)(nil), []string{"child 2: it is nil"}},
		"no name":       {nameless, []string{"child 2: ConfigMap: it has no name"}},
		"no object":     {5, []string{"child 2: a int is not an object"}},
		"no kind":       {map[string]any{"kind": "ConfigMap"}, []string{"child 2: it has no kind"}},
		"an unknown kind": {
			partOf("x"), []string{"child 2, Part.parts.example.org x", "the cluster has no such kind"},
		},
		"several in a list": {
			[]any{nil, partOf("x"), room("b=2"), 5}, []string{"child 2: it is nil", "child 3, Part", "child 5: a int"},
		},
		"twice":            {room("a=9"), []string{"child 1 and child 2 are both ConfigMap default/a"}},
		"otherwise before": {room("early=2"), []string{"child 2 is ConfigMap default/early", "an earlier call"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			withEnsureFixture(t, func(h ensureFixture) {
				heard := &ensureErrors{}
				h.runUntilEnd(func(s houseSel) {
					s.On("ensure", nonDeleteReasons, func(ctx context.Context, c *houseChange) error {
						if !hasBehaviour(c, "fail") {
							return c.Ensure(ctx, rooms(c.Object)...)
						}
						if err := c.Ensure(ctx, room("early=1")); err != nil {
							return err
						}
						_ = heard.note(c.Ensure(ctx, room("first=1"), []any{room("a=2"), tc.invalidChild},
							room("last=1")))
						return nil
					})
				})
				h.createHouseAndWait("a=1", "former=1")
				h.changeHouse("fail")
				heard.requireLast(t, tc.want...)
				got := h.existingRooms("first", "a", "last", "early", "former")
				if value, _, _ := nested(h.room("default", "a"), "data", "value"); len(got) < 5 || value != "2" {
					t.Errorf("an invalid child stops neither updates nor former children: a is %q, got %v", value, got)
				}
				h.changeRooms("a=1")
				if got := h.existingRooms("first", "a", "last", "early", "former"); !slices.Equal(got, []string{"a"}) {
					t.Errorf("a valid set prunes the other children: got %v", got)
				}
			})
		})
	}
}

// TestEnsureInADaemonBesideABadChild shows that an invalid child prevents pruning in a daemon as well, where each
// call declares the whole set.
func TestEnsureInADaemonBesideABadChild(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		heard := &ensureErrors{}
		h.runUntilEnd(func(s houseSel) {
			s.Daemon("ensure", func(ctx context.Context, r *kopf.Task[*kopf.Unstructured]) error {
				for _, all := range [][]any{rooms(house("a=1", "b=1")), {nil, rooms(house("c=1"))}} {
					_ = heard.note(r.Ensure(ctx, all...))
				}
				<-r.Stopping()
				return nil
			})
		})
		h.createHouseAndWait()
		heard.requireLast(t, "child 0: it is nil")
		if got := h.existingRooms("a", "b", "c"); len(got) != 3 {
			t.Errorf("an invalid child prevents pruning: got %v", got)
		}
	})
}

// TestEnsureConvergesOnADefinitionAndItsObject shows that a CRD, a namespace and objects of both are all applied
// within half a minute, in any order. The API server serves the objects some seconds after the CRD.
func TestEnsureConvergesOnADefinitionAndItsObject(t *testing.T) {
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(partDefinition), &definition.Object); err != nil {
		t.Fatal(err)
	}
	place := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	place.SetName("annex")
	inside, placed := rooms(house("annex/a=1"))[0], partOf("placed")
	placed.SetNamespace("annex")
	cases := map[string]func(ctx context.Context, c *houseChange) error{
		"one call": func(ctx context.Context, c *houseChange) error {
			return c.Ensure(ctx, partOf("one"), placed, inside, place, definition)
		},
		"a call each": func(ctx context.Context, c *houseChange) error {
			if err := c.Ensure(ctx, definition, place); err != nil {
				return err
			}
			return c.Ensure(ctx, partOf("one"), placed, inside)
		},
		"a sub-handler each": func(ctx context.Context, c *houseChange) error {
			c.Sub("kinds", func(ctx context.Context, c *houseChange) error { return c.Ensure(ctx, definition, place) })
			c.Sub("objects", func(ctx context.Context, c *houseChange) error {
				return c.Ensure(ctx, partOf("one"), placed, inside)
			}, kopf.After("kinds"))
			return c.RunSubs(ctx)
		},
	}
	for name, ensure := range cases {
		t.Run(name, func(t *testing.T) {
			withEnsureFixture(t, func(h ensureFixture) {
				way, served := h.api.Connect(), time.Now().Add(3*time.Second)
				way.Before = func(_ context.Context, r memapi.Request) error {
					if r.Resource.Plural == "parts" && time.Now().Before(served) {
						return apierrors.NewNotFound(schema.GroupResource{Resource: r.Resource.Plural}, r.Name)
					}
					return nil
				}
				defer h.stop(h.runEnsuring(func(s houseSel) {
					s.On("ensure", nonDeleteReasons, ensure, kopf.Backoff(time.Hour))
				})(way))
				h.createHouse()
				time.Sleep(30 * time.Second)
				for _, child := range []struct{ namespace, name string }{{"default", "one"}, {"annex", "placed"}} {
					if h.api.Object(parts, child.namespace, child.name) == nil {
						t.Errorf("part %s is applied within half a minute", child.name)
					}
				}
				if h.room("annex", "a") == nil {
					t.Error("the config map in the new namespace is applied within half a minute")
				}
			})
		})
	}
}

var parts = memapi.Resource{Group: "parts.example.org", Version: "v1", Kind: "Part", Plural: "parts", Namespaced: true}

const partDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: parts.parts.example.org}
spec:
  group: parts.example.org
  scope: Namespaced
  names: {kind: Part, plural: parts, singular: part}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

// partOf returns an object of a kind that is not installed.
func partOf(name string) *unstructured.Unstructured {
	child := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "parts.example.org/v1", "kind": "Part"}}
	child.SetName(name)
	return child
}

// runUntilEnd is like run, but stops at the end of the test.
func (h ensureFixture) runUntilEnd(register func(s houseSel)) {
	h.t.Helper()
	_, stop := h.run(register)
	h.t.Cleanup(stop)
}
