package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
)

// TestNewIndex shows how the results of an index function change the entries of an index.
func TestNewIndex(t *testing.T) {
	op := kopf.New("test.example.org")
	byOwner := kopf.NewIndex(kopf.For(op, &Widget{}), "by-owner",
		func(_ context.Context, w *Widget) (map[string]int, error) {
			switch w.Spec.Owner {
			case "nobody":
				return nil, nil
			case "as before":
				return nil, kopf.ErrKeepEntries
			}
			return map[string]int{w.Spec.Owner: len(w.Name)}, nil
		})
	plan := planOf(t, op)
	h := plan[0].Handler
	play := func(uid, owner string) (keep bool, err error) {
		entries, keep, err := h.Index.Call(
			t.Context(), &handlers.Invocation{Handler: h, Object: body(map[string]any{"owner": owner})},
		)
		if err == nil && !keep {
			h.Index.Store.ReplaceEntries(types.UID(uid), entries)
		}
		return keep, err
	}
	for _, uid := range []string{"u1", "u2"} {
		if keep, err := play(uid, "me"); keep || err != nil {
			t.Fatalf("new entries must replace the former ones: kept %v, error %v", keep, err)
		}
	}
	if keep, err := play("u1", "as before"); !keep || err != nil {
		t.Errorf("ErrKeepEntries must keep the entries: kept %v, error %v", keep, err)
	}
	name := len((&unstructured.Unstructured{Object: body(nil)}).GetName())
	keys := slices.Collect(byOwner.Keys())
	if d := cmp.Diff(
		[]int{name, name}, byOwner.Get("me"),
	); d != "" || byOwner.Len() != 1 || !byOwner.Has("me") || !slices.Equal(keys, []string{"me"}) {
		t.Errorf("the entries of both objects: -want, +got:\n%s; keys %v", d, keys)
	}
	for value := range byOwner.Values("me") {
		if value != name {
			t.Errorf("Values returns %d", value)
		}
		break
	}
	for _, uid := range []string{"u1", "u2"} {
		_, _ = play(uid, "nobody")
	}
	if byOwner.Get("me") != nil || byOwner.Len() != 0 {
		t.Errorf("the index must be empty without the entries of its objects, got %v", byOwner.Get("me"))
	}
}

// TestNewMemo shows that each object has its own value in a memo, until the object is forgotten.
func TestNewMemo(t *testing.T) {
	op := kopf.New("test.example.org")
	count := kopf.NewMemo[int](kopf.For(op, &Widget{}))
	named := kopf.NewMemo(kopf.For(op, &Widget{}), func() *string { return ptr.To("fresh") })
	a, b := &Widget{}, &Widget{}
	a.UID, b.UID = "a", "b"
	*count.Of(a)++
	*count.Of(a)++
	if *count.Of(a) != 2 || *count.Of(b) != 0 || count.Len() != 2 || *named.Of(a) != "fresh" {
		t.Errorf("each object must have its own value: got %d and %d of %d, %q", *count.Of(a), *count.Of(b),
			count.Len(), *named.Of(a))
	}
	kopf.EngineOptions(op).OnGone("a")
	if count.Len() != 1 || *count.Of(a) != 0 {
		t.Errorf("Forget must remove the value of a deleted object: %d values, now %d", count.Len(), *count.Of(a))
	}
}

// TestIndexLookupAllocations shows that look-ups in an index allocate at most their result.
func TestIndexLookupAllocations(t *testing.T) {
	op := kopf.New("test.example.org")
	byOwner := kopf.NewIndex(kopf.For(op, &Widget{}), "by-owner",
		func(_ context.Context, w *Widget) (map[string]string, error) {
			return map[string]string{w.Spec.Owner: w.Name}, nil
		})
	plan := planOf(t, op)
	for _, uid := range []types.UID{"u1", "u2", "u3"} {
		plan[0].Handler.Index.Store.ReplaceEntries(uid, map[any]any{"me": "name"})
	}
	key := strings.Repeat("m", 1) + "e"
	for what, lookup := range map[string]struct {
		maxAllocations float64
		call           func()
	}{
		"Get":   {1, func() { byOwner.Get(key) }},
		"Has":   {0, func() { byOwner.Has(key) }},
		"Count": {0, func() { byOwner.Count(key) }},
		"Values": {0, func() {
			for range byOwner.Values(key) {
				continue
			}
		}},
	} {
		lookup.call()
		if n := testing.AllocsPerRun(100, lookup.call); n > lookup.maxAllocations {
			t.Errorf("%s: %v allocations, want %v", what, n, lookup.maxAllocations)
		}
	}
}

// lookup puts a value into an index and returns the copy that the index returns.
func lookup[V any](t *testing.T, value V) (got V) {
	t.Helper()
	op := kopf.New("test.example.org")
	index := kopf.NewIndex(
		kopf.For(op, &Widget{}), "i",
		func(context.Context, *Widget) (map[string]V, error) { return map[string]V{"k": value}, nil },
	)
	plan := planOf(t, op)
	h := plan[0].Handler
	what := &cause.Cause{Object: jsontext.NewFromValue(body(nil))}
	entries, _, err := h.Index.Call(t.Context(), &handlers.Invocation{Handler: h, Cause: what, Object: what.Body()})
	if err != nil {
		t.Fatal(err)
	}
	h.Index.Store.ReplaceEntries(types.UID("u"), entries)
	found := index.Get("k")
	for all := range index.Values("k") {
		if !reflect.DeepEqual(all, found[0]) {
			t.Errorf("Values returns %v, but Get returns %v", all, found[0])
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

// guardedNode has a lock of its own, so that it cannot be copied.
type guardedNode struct {
	sync.Mutex
	Names []string
}

// TestValuesOfIndicesAreCopies shows that an index returns copies of its values, except for those that have a lock.
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
	tamperWith(reflect.ValueOf(got))
	got.Much.Add(more)
	got.More.Add(more)
	if !reflect.DeepEqual(original(), stored) || more.Value() != 2 {
		t.Errorf("a change to a returned value must not change the index: %+v", stored)
	}

	loop := &node{Name: "loop", By: map[string]any{}}
	loop.Next, loop.All, loop.By["self"] = loop, []*node{loop}, loop.By
	if copied := lookup(t, loop); copied == loop || copied.Next.All[0].Next.Name != "loop" {
		t.Error("a value with cycles must be copied with its cycles")
	}

	shared := &guardedNode{Names: []string{"a"}}
	if lookup(t, shared) != shared {
		t.Error("a value with a lock must be returned itself, not as a copy")
	}
	if got := lookup(t, "text"); got != "text" {
		t.Errorf("a text must be returned unchanged, got %q", got)
	}
	if got := lookup[any](t, nil); got != nil {
		t.Errorf("nil must be returned unchanged, got %v", got)
	}
	raw := &unstructured.Unstructured{Object: body(map[string]any{"list": []any{"a"}})}
	if copied := lookup(t, raw); copied == raw || !reflect.DeepEqual(copied, raw) {
		t.Error("an unstructured object must be returned as a copy")
	}
}

// TestIndexIterators shows that the iterators of an index return its present entries.
func TestIndexIterators(t *testing.T) {
	op := kopf.New("test.example.org")
	index := kopf.NewIndex(kopf.For(op, &Widget{}), "i",
		func(context.Context, *Widget) (map[string]int, error) { return nil, nil })
	plan := planOf(t, op)
	held := plan[0].Handler.Index.Store
	for range index.All() {
		t.Error("an empty index must not have anything to iterate over")
	}
	held.ReplaceEntries("u1", map[any]any{"a": 1, "b": 2})
	held.ReplaceEntries("u2", map[any]any{"a": 3})
	pairs, counts := map[string][]int{}, map[string]int{}
	for key, value := range index.All() {
		pairs[key] = append(pairs[key], value)
	}
	for key, count := range index.Counts() {
		counts[key] = count
	}
	slices.Sort(pairs["a"])
	if d := cmp.Diff(map[string][]int{"a": {1, 3}, "b": {2}}, pairs); d != "" {
		t.Errorf("pairs: -want, +got:\n%s", d)
	}
	if d := cmp.Diff(map[string]int{"a": 2, "b": 1}, counts); d != "" {
		t.Errorf("counts: -want, +got:\n%s", d)
	}
	if index.Count("a") != 2 || index.Count("c") != 0 || !index.Has("b") || index.Has("c") {
		t.Errorf("counts of single keys: got %d and %d", index.Count("a"), index.Count("c"))
	}
	for key := range index.Keys() { // entries that are removed during the iteration do not have values
		held.ReplaceEntries("u1", nil)
		held.ReplaceEntries("u2", nil)
		for range index.Values(key) {
			t.Error("Values must not return values of removed objects")
		}
	}
	for range index.Counts() {
		t.Error("Counts must not return counts of removed objects")
	}
}

// TestAttemptsOfIndexFunctions shows that the context of an index function has the attempt.
func TestAttemptsOfIndexFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		began := time.Now()
		op := kopf.New("indices.example.org", kopf.Settings{Peering: kopf.PeeringSettings{Standalone: true}})
		kopf.NewIndex(kopf.ForResource(op, "configmaps"), "i", func(
			ctx context.Context, _ *kopf.Unstructured,
		) (map[string]string, error) {
			attempt, found := kopf.AttemptFrom(ctx)
			mu.Lock()
			defer mu.Unlock()
			got = append(got, fmt.Sprintf("%s: %d %s %t", time.Since(began).Truncate(time.Second), attempt.Retry,
				time.Since(attempt.Started).Truncate(time.Second), found))
			if len(got) < 3 {
				return nil, kopf.Temporary(errors.New("not yet"), time.Second)
			}
			return nil, nil
		})
		server := memapi.New()
		kind := memapi.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
		server.Put(kind, map[string]any{"metadata": map[string]any{"namespace": "ns", "name": "w1"}})
		r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
		r.Ready()
		for i := range 3 {
			time.Sleep(10 * time.Second)
			server.Edit(kind, "ns", "w1", func(body map[string]any) {
				body["data"] = map[string]any{"n": fmt.Sprint(i)}
			})
		}
		time.Sleep(time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if d := cmp.Diff([]string{
			"0s: 0 0s true", "10s: 1 10s true", "20s: 2 20s true", "30s: 0 0s true",
		}, got); d != "" {
			t.Errorf("retries and runtime count from the first failure, and a success resets them: -want, +got:\n%s", d)
		}
		if _, found := kopf.AttemptFrom(t.Context()); found {
			t.Error("a context outside an index function must not have an attempt")
		}
	})
}
