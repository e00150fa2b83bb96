package kopf_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// childRecords are the annotations with sets of children, by the ids of their handlers.
func (h household) childRecords() []string {
	var ids []string
	for name := range maps.Keys(h.house().GetAnnotations()) {
		if _, id, ok := strings.Cut(name, "/children-of"); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// The children of a former id are those of the handler: they are pruned.
func TestFormerIDsOfChildren(t *testing.T) {
	daemon := func(id string, opts ...kopf.Option) func(s houseSelection) {
		return func(s houseSelection) {
			s.Daemon(id, func(ctx context.Context, r *kopf.Task[*kopf.Unstructured]) error {
				return r.Ensure(ctx, rooms(r.Object)...)
			}, kopf.JoinOptions(opts...))
		}
	}
	changing := func(id string, opts ...kopf.Option) func(s houseSelection) {
		return func(s houseSelection) { s.On(id, always, ensure, kopf.JoinOptions(opts...)) }
	}
	part := func(id, sub string, former ...string) func(s houseSelection) {
		return func(s houseSelection) {
			s.On(id, always, withSub(sub, ensure, former...), kopf.FormerIDs("unused"))
		}
	}
	for name, tc := range map[string]struct {
		reason     string
		then, now  func(s houseSelection)
		was, wants string
	}{
		"handler of changes": {
			"the set belongs to the id", changing("old"), changing("new", kopf.FormerIDs("old")), ".old", ".new",
		},
		"daemon": {
			"so does that of a daemon", daemon("old"), daemon("new", kopf.FormerIDs("old")), "-run.old", "-run.new",
		},
		"sub-handler": {
			"and that of a sub-handler", part("fn", "old"), part("fn", "new", "old"), ".fn.old", ".fn.new",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inHousehold(t, func(h household) {
				h.begin("kept", "dropped")
				_, stop := h.run(tc.then)
				h.settle()
				stop()
				kept := h.room("default", "kept").GetUID()
				h.rebuild("kept", "added")
				_, stop = h.run(tc.now)
				h.settle()
				stop()
				if h.room("default", "dropped") != nil || h.room("default", "added") == nil ||
					h.room("default", "kept").GetUID() != kept {
					t.Errorf("%s: dropped %v, added %v", tc.reason, h.room("default", "dropped") != nil,
						h.room("default", "added") != nil)
				}
				if d := cmp.Diff([]string{tc.wants}, h.childRecords()); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}

// Sets of both ids are merged.
func TestFormerIDsOfMergedChildren(t *testing.T) {
	with := func(opts ...kopf.Option) func(s houseSelection) {
		return func(s houseSelection) { s.On("new", always, ensure, kopf.JoinOptions(opts...)) }
	}
	inHousehold(t, func(h household) {
		h.begin("a", "kept")
		for i, version := range []func(s houseSelection){
			func(s houseSelection) { s.On("old", always, ensure) }, with(), with(kopf.FormerIDs("old")),
		} {
			_, stop := h.run(version)
			h.settle()
			stop()
			h.rebuild([][]any{{"b", "kept"}, {"c", "kept"}, nil}[i]...)
		}
		for name, want := range map[string]bool{"a": false, "b": false, "c": true, "kept": true} {
			if got := h.room("default", name) != nil; got != want {
				t.Errorf("%s is there: %v, want %v", name, got, want)
			}
		}
		if d := cmp.Diff([]string{".new"}, h.childRecords()); d != "" {
			t.Errorf("-want, +got:\n%s", d)
		}
	})
}

// A lost record is restored from children that name the former id.
func TestFormerIDsOfLostChildren(t *testing.T) {
	inHousehold(t, func(h household) {
		h.begin("kept", "dropped")
		_, stop := h.run(func(s houseSelection) { s.On("old", always, ensure) })
		h.settle()
		stop()
		h.api.Edit(houses, "default", "home", func(house map[string]any) {
			annotations, _ := house["metadata"].(map[string]any)["annotations"].(map[string]any)
			delete(annotations, "test.example.org/children-of.old")
			house["spec"] = map[string]any{"rooms": []any{"kept"}}
		})
		_, stop = h.run(func(s houseSelection) { s.On("new", always, ensure, kopf.FormerIDs("old")) })
		h.settle()
		stop()
		if h.room("default", "dropped") != nil || h.room("default", "kept") == nil {
			t.Error("the child that is not declared any more must go, and the other one stay")
		}
	})
}

// A set of a former id is pruned also if nothing is added to it.
func TestFormerIDsOfFewerChildren(t *testing.T) {
	inHousehold(t, func(h household) {
		h.begin("kept", "dropped")
		_, stop := h.run(func(s houseSelection) { s.On("old", always, ensure) })
		h.settle()
		stop()
		h.rebuild("kept")
		_, stop = h.run(func(s houseSelection) { s.On("new", always, ensure, kopf.FormerIDs("old")) })
		h.settle()
		stop()
		if h.room("default", "dropped") != nil || h.room("default", "kept") == nil {
			t.Error("the child that is not declared any more must go, and the other one stay")
		}
		if d := cmp.Diff([]string{".new"}, h.childRecords()); d != "" {
			t.Errorf("-want, +got:\n%s", d)
		}
	})
}
