package facade_test

import (
	"context"
	"reflect"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// lookup is what an index gives for a value.
func lookup[V any](t *testing.T, value V) (got V) {
	t.Helper()
	op := facade.New("test.example.org")
	index := facade.NewIndex(
		facade.For(op, &Widget{}), "i",
		func(context.Context, *Widget) (map[string]V, error) { return map[string]V{"k": value}, nil },
	)
	plan, err := facade.Plan(op, newScheme(t))
	if err != nil {
		t.Fatal(err)
	}
	h := plan[0].Handler
	what := &cause.Cause{Body: body(nil)}
	entries, _, err := h.Index.Call(t.Context(), &handlers.Call{Handler: h, Cause: what, Object: what.Body})
	if err != nil {
		t.Fatal(err)
	}
	h.Index.Into.Replace(types.UID("u"), entries)
	found := index.Get("k")
	for all := range index.All("k") {
		if !reflect.DeepEqual(all, found[0]) {
			t.Errorf("one way of looking gives %v, the other %v", all, found[0])
		}
	}
	return found[0]
}

type node struct {
	Name  string
	Next  *node
	All   []*node
	Any   any
	By    map[string]any
	Row   [2][]string
	Stamp metav1.Time
	Much  resource.Quantity
	More  *resource.Quantity
	Call  func()
}

// guardedNode has state of its own.
type guardedNode struct {
	sync.Mutex
	Names []string
}

func TestValuesOfIndicesAreCopies(t *testing.T) {
	more := resource.MustParse("2")
	original := func() *node {
		n := &node{Name: "a", Any: map[string]any{"l": []any{"x"}}, By: map[string]any{"k": &node{Name: "c"}},
			Row:   [2][]string{{"r"}, nil},
			Stamp: metav1.Unix(7, 0), Much: resource.MustParse("1"), More: &more}
		n.All = []*node{{Name: "b"}, nil}
		return n
	}
	stored := original()
	got := lookup(t, stored)
	if !reflect.DeepEqual(original(), got) {
		t.Errorf("want %+v, got %+v", original(), got)
	}
	rage(reflect.ValueOf(got))
	got.Much.Add(more)
	got.More.Add(more)
	if !reflect.DeepEqual(original(), stored) || more.Value() != 2 {
		t.Errorf("what is in the index has changed: %+v", stored)
	}

	loop := &node{Name: "loop", By: map[string]any{}}
	loop.Next, loop.All, loop.By["self"] = loop, []*node{loop}, loop.By
	if copied := lookup(t, loop); copied == loop || copied.Next.All[0].Next.Name != "loop" {
		t.Error("a value with cycles is copied with them")
	}

	shared := &guardedNode{Names: []string{"a"}}
	if lookup(t, shared) != shared {
		t.Error("what has a lock of its own is shared: a copy of it would be another one")
	}
	if got := lookup(t, "text"); got != "text" {
		t.Errorf("got %q", got)
	}
	if got := lookup[any](t, nil); got != nil {
		t.Errorf("got %v", got)
	}
	raw := &unstructured.Unstructured{Object: body(map[string]any{"list": []any{"a"}})}
	if copied := lookup(t, raw); copied == raw || !reflect.DeepEqual(copied, raw) {
		t.Error("objects are copied")
	}
}
