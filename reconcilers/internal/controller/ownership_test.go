package controller_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

// ownershipFixture is a site with objects that own others of the same kind.
type ownershipFixture struct {
	*kindFixture
	repairs, forgotten []string
	reportedDeletions  int // children whose deletion was reported
}

func newOwnershipFixture(t *testing.T) *ownershipFixture {
	f := &ownershipFixture{kindFixture: newKindFixture(t)}
	f.deps.Children = &owned.Children{Label: "owner", Author: f}
	return f
}

// The operator itself has made none of the children.

func (*ownershipFixture) IsOwnWrite(types.UID, string) bool                     { return false }
func (*ownershipFixture) IsOutdated(types.UID, *unstructured.Unstructured) bool { return false }
func (*ownershipFixture) DeclaredMatcher(types.UID, map[string]any) func(child *unstructured.Unstructured) bool {
	return func(*unstructured.Unstructured) bool { return true }
}
func (f *ownershipFixture) ForgetChild(types.UID) { f.withLock(func() { f.reportedDeletions++ }) }
func (*ownershipFixture) NeedsRepair(_ types.UID, _ *unstructured.Unstructured, _, _ bool) bool {
	return false
}

func (*ownershipFixture) UnsavedRecords(map[string]any) (patching.Transform, []string) {
	return nil, nil
}

func (f *ownershipFixture) RepairChildren(
	_ context.Context, owner map[string]any, _ handlers.EventPoster,
) *time.Duration {
	f.withLock(func() { f.repairs = append(f.repairs, (&unstructured.Unstructured{Object: owner}).GetName()) })
	return nil
}

func (f *ownershipFixture) Forget(owner types.UID) {
	f.withLock(func() { f.forgotten = append(f.forgotten, string(owner)) })
}

// handleChildren registers a handler for events of children, and the watch of their kind.
func (f *ownershipFixture) handleChildren(does func(c *handlers.Invocation) error, policy handlers.Policy) {
	watched := &handlers.Handler{ID: "o", Family: handlers.Parent}
	watched.ParentHandler = watched
	f.handlers = append(f.handlers, adapters.New(watched, nil))
	h := &handlers.Handler{ID: "t", Family: handlers.Child, ParentHandler: watched, Policy: policy}
	h.Call = func(_ context.Context, c *handlers.Invocation) error {
		f.recordCall("t " + name(c) + " " + c.Cause.EventType + " " +
			(&unstructured.Unstructured{Object: c.Child}).GetName())
		return does(c)
	}
	f.handlers = append(f.handlers, adapters.New(h, nil))
}

// createChild creates a child of the owner.
func (f *ownershipFixture) createChild(owner, name string) {
	f.t.Helper()
	child := f.object("a", name)
	child.SetOwnerReferences([]metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: f.uid(owner)},
	})
	if err := f.userClient.Create(f.t.Context(), child); err != nil {
		f.t.Fatal(err)
	}
	f.waitUntilSettled()
}

func (f *ownershipFixture) uid(name string) types.UID {
	return (&unstructured.Unstructured{Object: f.server.Object(serverResource, "a", name)}).GetUID()
}

// TestChildren shows which events of children lead to calls, and when an owner is forgotten.
func TestChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOwnershipFixture(t)
		f.handleChildren(succeed, handlers.Policy{})
		stop := f.run()
		f.create("a", "p")
		f.requireCalls("a parent without children")
		f.createChild("p", "k")
		f.requireCalls("after the creation of a child", "t p ADDED k")
		f.edit("a", "k", `{"data":{"a":"b"}}`)
		f.requireCalls("after a change of the child", "t p MODIFIED k")
		f.remove("a", "k")
		f.requireCalls("after the deletion of the child", "t p DELETED k")
		f.createChild("p", "l")
		f.requireCalls("after the creation of a second child", "t p ADDED l")
		p := f.uid("p")
		f.takeAll(&f.forgotten)
		f.remove("a", "p")
		if got := f.takeAll(&f.forgotten); !slices.Contains(got, string(p)) {
			t.Errorf("forgot the owners %q, want %q", got, p)
		}
		f.create("a", "q")
		f.createChild("q", "m")
		f.requireCalls("a child of another owner", "t q ADDED m")
		stop(controller.ErrRestarting)
		if got := f.takeAll(&f.forgotten); !slices.Contains(got, string(f.uid("q"))) {
			t.Errorf("the end of the run did not forget the second owner: %q", got)
		}
		f.remove("a", "m")
		f.run()
		f.requireCalls("a child deleted between two runs")
	})
}

// TestRetriesForChildren shows that an object is processed again at the earliest retry, whether of a handler of changes
// or of children.
func TestRetriesForChildren(t *testing.T) {
	for name, c := range map[string]struct{ tends, creates time.Duration }{
		"ChildrenFirst": {10 * time.Second, 30 * time.Second}, "ChildrenLast": {30 * time.Second, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newOwnershipFixture(t)
				late := func(*handlers.Invocation) error { return errors.New("not yet") }
				f.handleChildren(late, handlers.Policy{Backoff: ptr.To(c.tends)})
				f.addHandler(&handlers.Handler{
					ID: "c", Reason: cause.Create, Policy: handlers.Policy{Backoff: ptr.To(c.creates)},
					Filters: []handlers.Filter{func(_ context.Context, c *cause.Cause) (bool, error) {
						return (&unstructured.Unstructured{Object: c.Body()}).GetName() == "p", nil
					}},
				}, late)
				f.create("a", "p")
				f.createChild("p", "k")
				f.run()
				f.requireCalls("at once", "c p", "t p  k")
				time.Sleep(11 * time.Second)
				first, second := "t p  k", "c p"
				if c.creates < c.tends {
					first, second = second, first
				}
				f.requireCalls("after ten seconds", first)
				time.Sleep(20 * time.Second)
				f.requireCalls("after thirty seconds", first, first, second)
			})
		})
	}
}

// TestHandlersBesideChildren shows that a kind with child handlers elsewhere is handled normally, without repairs of
// children.
func TestHandlersBesideChildren(t *testing.T) {
	for name, beside := range map[string]*handlers.Handler{
		"Changing": {ID: "b", Reason: cause.Update}, "Watching": {ID: "b", Family: handlers.Watching},
		"Spawning": {ID: "b", Family: handlers.Background,
			Background: &handlers.BackgroundOptions{Interval: time.Hour}},
		"Admitting": {ID: "b", Family: handlers.Admitting},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newOwnershipFixture(t)
				watched := &handlers.Handler{ID: "o", Family: handlers.Parent}
				watched.ParentHandler = watched
				f.handlers = append(f.handlers, adapters.New(watched, nil))
				f.addHandler(&handlers.Handler{ID: "c", Reason: cause.Create}, succeed)
				f.addHandler(beside, succeed)
				f.run()
				f.create("a", "p")
				if calls := f.takeAll(&f.calls); !slices.Contains(calls, "c p") {
					t.Errorf("the create handler is not called: %q", calls)
				}
				if got := f.takeAll(&f.repairs); len(got) > 0 {
					t.Errorf("repaired children of %q, want none", got)
				}
			})
		})
	}
}

// TestKindOfChildrenAlone shows that a kind that is watched only for the owners of its objects is never written to.
func TestKindOfChildrenAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOwnershipFixture(t)
		watched := &handlers.Handler{ID: "o", Family: handlers.Parent}
		watched.ParentHandler = watched
		f.handlers = append(f.handlers, adapters.New(watched, nil))
		f.run()
		f.create("a", "p")
		for _, r := range f.connection.DrainRequests() {
			if r.Verb != "list" && r.Verb != "watch" {
				t.Errorf("unexpected request for an object: %s %s", r.Verb, r.Path)
			}
		}
	})
}

// TestOwnersThatGo shows that children are not repaired for an owner that was deleted or replaced during its pass.
func TestOwnersThatGo(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		does   func(f *ownershipFixture)
		want   []string
	}{
		"Stays": {"children of an existing owner are repaired", func(*ownershipFixture) {}, []string{"p"}},
		"Gone": {"children of a deleted owner are not repaired",
			func(f *ownershipFixture) { f.server.Discard(serverResource, "a", "p") }, nil},
		"Replaced": {
			"children of a replaced owner are not repaired by the pass of the old one", func(f *ownershipFixture) {
				f.server.Discard(serverResource, "a", "p")
				// Without settling: this runs in a handler, and the test itself waits at this moment.
				if err := f.userClient.Create(f.t.Context(), f.object("a", "p")); err != nil {
					f.t.Error(err)
				}
			}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer explain(t, c.reason)
			synctest.Test(t, func(t *testing.T) {
				f := newOwnershipFixture(t)
				f.handleChildren(succeed, handlers.Policy{})
				first := true
				f.addHandler(&handlers.Handler{ID: "c", Reason: cause.Create}, func(*handlers.Invocation) error {
					if !first { // hold back the repair for the second owner
						time.Sleep(time.Hour)
						return nil
					}
					first = false
					c.does(f)
					time.Sleep(time.Second)
					return nil
				})
				f.create("a", "p")
				f.run()
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := slices.Compact(f.takeAll(&f.repairs)); !slices.Equal(got, c.want) {
					t.Errorf("repaired the children of %q, want %q", got, c.want)
				}
			})
		})
	}
}

// TestIndexedChildren shows that a kind that is watched for the owners of its objects is also handled and indexed
// normally.
func TestIndexedChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOwnershipFixture(t)
		watched := &handlers.Handler{ID: "o", Family: handlers.Parent}
		watched.ParentHandler = watched
		f.handlers = append(f.handlers, adapters.New(watched, nil), adapters.New(&handlers.Handler{
			ID: "i", Family: handlers.Indexing, Index: &handlers.IndexWork{Call: func(
				context.Context, *handlers.Invocation,
			) (map[any]any, bool, error) {
				return nil, false, nil
			}, Store: indexes.New()},
		}, nil))
		f.addHandler(&handlers.Handler{ID: "c", Family: handlers.Changing, Reason: cause.Create}, succeed)
		f.run()
		f.create("a", "p")
		f.requireCalls("after a creation", "c p")
	})
}

// TestOwnersThatAreOwned shows that objects are children only if a handler watches their kind, whatever their owner
// references say.
func TestOwnersThatAreOwned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOwnershipFixture(t)
		elsewhere := &handlers.Handler{ID: "o", Family: handlers.Parent}
		h := &handlers.Handler{ID: "t", Family: handlers.Child, ParentHandler: elsewhere}
		h.Call = func(context.Context, *handlers.Invocation) error { f.recordCall("t"); return nil }
		f.handlers = append(f.handlers, adapters.New(h, nil))
		f.run()
		f.create("a", "p")
		f.createChild("p", "k")
		f.remove("a", "k")
		f.requireCalls("after the creation of both objects")
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.reportedDeletions != 0 {
			t.Errorf("reported the deletion of %d children, want none", f.reportedDeletions)
		}
	})
}

// TestOwnersThatGoMeanwhile shows that deleting an owner during its pass is not an error and calls no handler for
// children.
func TestOwnersThatGoMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOwnershipFixture(t)
		f.handleChildren(succeed, handlers.Policy{})
		creating := &handlers.Handler{ID: "c", Family: handlers.Changing, Reason: cause.Create}
		f.addHandler(creating, func(*handlers.Invocation) error {
			f.server.Discard(serverResource, "a", "p")
			time.Sleep(100 * time.Millisecond) // until the deletion reaches the cache
			return nil
		})
		f.run()
		f.create("a", "p")
		f.requireCalls("after the deletion of the owner", "c p")
		if lines := f.linesWith(`"error"=`); len(lines) > 0 {
			t.Errorf("errors are logged: %v", lines)
		}
	})
}
