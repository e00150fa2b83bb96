package kopf_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// childRecords returns the sorted ids in the annotations with sets of children.
func (h ensureFixture) childRecords() []string {
	var ids []string
	for name := range maps.Keys(h.house().GetAnnotations()) {
		if _, id, ok := strings.Cut(name, "/children-of"); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// TestFormerIDsOfChildren shows that children declared under a former id belong to the handler and are pruned.
func TestFormerIDsOfChildren(t *testing.T) {
	daemon := func(id string, opts ...kopf.Option) func(s houseSelection) {
		return func(s houseSelection) {
			s.Daemon(id, func(ctx context.Context, r *kopf.Task[*kopf.Unstructured]) error {
				return r.Ensure(ctx, rooms(r.Object)...)
			}, kopf.JoinOptions(opts...))
		}
	}
	changing := func(id string, opts ...kopf.Option) func(s houseSelection) {
		return func(s houseSelection) { s.On(id, nonDeleteReasons, ensure, kopf.JoinOptions(opts...)) }
	}
	part := func(id, sub string, former ...string) func(s houseSelection) {
		return func(s houseSelection) {
			s.On(id, nonDeleteReasons, withSub(sub, ensure, former...), kopf.FormerIDs("unused"))
		}
	}
	for name, tc := range map[string]struct {
		reason                          string
		registerFormer, registerPresent func(s houseSelection)
		formerRecord, wantRecord        string
	}{
		"handler of changes": {
			"the children of a change handler's former id are pruned",
			changing("old"), changing("new", kopf.FormerIDs("old")), ".old", ".new",
		},
		"daemon": {
			"the children of a daemon's former id are pruned",
			daemon("old"), daemon("new", kopf.FormerIDs("old")), "-run.old", "-run.new",
		},
		"sub-handler": {
			"the children of a sub-handler's former id are pruned",
			part("fn", "old"), part("fn", "new", "old"), ".fn.old", ".fn.new",
		},
	} {
		t.Run(name, func(t *testing.T) {
			withEnsureFixture(t, func(h ensureFixture) {
				h.createHouse("kept", "dropped")
				_, stop := h.run(tc.registerFormer)
				h.settle()
				stop()
				if d := cmp.Diff([]string{tc.formerRecord}, h.childRecords()); d != "" {
					t.Errorf("%s: before: -want, +got:\n%s", tc.reason, d)
				}
				kept := h.room("default", "kept").GetUID()
				h.changeRooms("kept", "added")
				_, stop = h.run(tc.registerPresent)
				h.settle()
				stop()
				if h.room("default", "dropped") != nil || h.room("default", "added") == nil ||
					h.room("default", "kept").GetUID() != kept {
					t.Errorf("%s: dropped exists: %v, added exists: %v", tc.reason, h.room("default", "dropped") != nil,
						h.room("default", "added") != nil)
				}
				if d := cmp.Diff([]string{tc.wantRecord}, h.childRecords()); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}

// TestFormerIDsOfMergedChildren shows that the sets of the present and the former id are merged.
func TestFormerIDsOfMergedChildren(t *testing.T) {
	with := func(opts ...kopf.Option) func(s houseSelection) {
		return func(s houseSelection) { s.On("new", nonDeleteReasons, ensure, kopf.JoinOptions(opts...)) }
	}
	withEnsureFixture(t, func(h ensureFixture) {
		h.createHouse("a", "kept")
		for i, version := range []func(s houseSelection){
			func(s houseSelection) { s.On("old", nonDeleteReasons, ensure) }, with(), with(kopf.FormerIDs("old")),
		} {
			_, stop := h.run(version)
			h.settle()
			stop()
			h.changeRooms([][]any{{"b", "kept"}, {"c", "kept"}, nil}[i]...)
		}
		for name, want := range map[string]bool{"a": false, "b": false, "c": true, "kept": true} {
			if got := h.room("default", name) != nil; got != want {
				t.Errorf("child %s exists: got %v, want %v", name, got, want)
			}
		}
		if d := cmp.Diff([]string{".new"}, h.childRecords()); d != "" {
			t.Errorf("the merged set has one record: -want, +got:\n%s", d)
		}
	})
}

// TestFormerIDsOfLostChildren shows that a lost record is restored from children that name the former id.
func TestFormerIDsOfLostChildren(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		h.createHouse("kept", "dropped")
		_, stop := h.run(func(s houseSelection) { s.On("old", nonDeleteReasons, ensure) })
		h.settle()
		stop()
		h.api.Edit(houses, "default", "home", func(house map[string]any) {
			annotations, _ := house["metadata"].(map[string]any)["annotations"].(map[string]any)
			delete(annotations, "test.example.org/children-of.old")
			house["spec"] = map[string]any{"rooms": []any{"kept"}}
		})
		op, log := kopf.New("test.example.org"), &lines{}
		kopf.ForResource(op, "test.example.org/v1", "houses").On("new", nonDeleteReasons, ensure, kopf.FormerIDs("old"))
		stop = operate(h.t, h.api.Connect(), op, funcr.New(log.add, funcr.Options{}))
		h.settle()
		stop()
		if h.room("default", "dropped") != nil || h.room("default", "kept") == nil {
			t.Error("only the undeclared child is deleted")
		}
		restored := log.with("Restored a record of children that another client removed")
		if len(restored) != 1 || !strings.Contains(restored[0], `"children"=1`) {
			t.Errorf("the restored record of the undeclared child is logged: got %q", restored)
		}
	})
}

// TestFormerIDsOfFewerChildren shows that a set of a former id is pruned even if no child is added.
func TestFormerIDsOfFewerChildren(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		h.createHouse("kept", "dropped")
		_, stop := h.run(func(s houseSelection) { s.On("old", nonDeleteReasons, ensure) })
		h.settle()
		stop()
		h.changeRooms("kept")
		_, stop = h.run(func(s houseSelection) { s.On("new", nonDeleteReasons, ensure, kopf.FormerIDs("old")) })
		h.settle()
		stop()
		if h.room("default", "dropped") != nil || h.room("default", "kept") == nil {
			t.Error("only the undeclared child is deleted")
		}
		if d := cmp.Diff([]string{".new"}, h.childRecords()); d != "" {
			t.Errorf("the set has one record: -want, +got:\n%s", d)
		}
	})
}
