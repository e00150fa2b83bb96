package owned_test

import (
	"context"
	"errors"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

// TestEventsOfChildren shows which event a handler gets for a child, depending on the changes since its last call.
func TestEventsOfChildren(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		act    func(w *harness)
		want   []string
	}{
		"Added": {
			"a new child is reported once",
			func(w *harness) {
				w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
				w.handleOwner("o")
				w.handleOwner("o")
			},
			[]string{"pass o", "h ADDED c@1", "repair o", "repair o"},
		},
		"Listed": {
			"a child that existed before the operator started is listed",
			func(w *harness) { w.deliverEvent(w.pods, owned.Listed, child("c", 1, "o")); w.handleOwner("o") },
			[]string{"pass o", "h LISTED c@1", "repair o"},
		},
		"Modified": {
			"a changed child is modified",
			func(w *harness) {
				w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
				w.handleOwner("o")
				w.deliverEvent(w.pods, owned.Modified, child("c", 2, "o"))
				w.handleOwner("o")
			},
			[]string{"pass o", "h ADDED c@1", "repair o", "pass o", "h MODIFIED c@2", "repair o"},
		},
		"Quickly": {
			"several changes before a pass are reported as one",
			func(w *harness) {
				w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
				w.deliverEvent(w.pods, owned.Modified, child("c", 2, "o"))
				w.handleOwner("o")
			},
			[]string{"pass o", "pass o", "h ADDED c@2", "repair o"},
		},
		"Deleted": {
			"a deleted child is reported with its last state",
			func(w *harness) {
				w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
				w.handleOwner("o")
				w.deliverEvent(w.pods, owned.Deleted, child("c", 2, "o"))
				w.handleOwner("o")
				w.handleOwner("o")
			},
			[]string{
				"pass o", "h ADDED c@1", "repair o", "gone c", "pass o", "h DELETED c@2", "repair o", "repair o",
			},
		},
		"Fleeting": {
			"a child that was never reported is not reported as deleted",
			func(w *harness) {
				w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
				w.deliverEvent(w.pods, owned.Deleted, child("c", 2, "o"))
				w.handleOwner("o")
			},
			[]string{"pass o", "gone c", "pass o", "repair o"},
		},
		"Back": {
			"a child that was lost and came back is added, not listed",
			func(w *harness) {
				w.deliverEvent(w.pods, owned.Listed, child("c", 1, "o"))
				w.deliverEvent(w.pods, owned.Modified, child("c", 2))
				w.deliverEvent(w.pods, owned.Modified, child("c", 3, "o"))
				w.handleOwner("o")
			},
			[]string{"pass o", "pass o", "pass o", "h ADDED c@3", "repair o"},
		},
		"OurOwn": {
			"the operator's own write is not reported, but a later change by others is",
			func(w *harness) {
				w.ownWrites["c@1"] = true
				w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
				w.handleOwner("o")
				w.deliverEvent(w.pods, owned.Modified, child("c", 2, "o"))
				w.handleOwner("o")
			},
			[]string{"pass o", "repair o", "pass o", "h MODIFIED c@2", "repair o"},
		},
		"OurOwnGone": {
			"the deletion of a child that the operator made is reported",
			func(w *harness) {
				w.ownWrites["c@1"] = true
				w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
				w.handleOwner("o")
				w.deliverEvent(w.pods, owned.Deleted, child("c", 1, "o"))
				w.handleOwner("o")
			},
			[]string{"pass o", "repair o", "gone c", "pass o", "h DELETED c@1", "repair o"},
		},
		"Orphaned": {
			"a child that loses its owner is reported as deleted",
			func(w *harness) {
				w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
				w.handleOwner("o")
				w.deliverEvent(w.pods, owned.Modified, child("c", 2))
				w.handleOwner("o")
				w.deliverEvent(w.pods, owned.Deleted, child("c", 3))
				w.handleOwner("o")
			},
			[]string{
				"pass o", "h ADDED c@1", "repair o", "pass o", "h DELETED c@1", "repair o", "gone c", "repair o",
			},
		},
		"Readopted": {
			"a child that returns to its owner is added",
			func(w *harness) {
				w.deliverEvent(w.pods, owned.Listed, child("c", 1, "o"))
				w.handleOwner("o")
				w.deliverEvent(w.pods, owned.Modified, child("c", 2))
				w.handleOwner("o")
				w.journal = nil
				w.deliverEvent(w.pods, owned.Modified, child("c", 3, "o"))
				w.handleOwner("o")
			},
			[]string{"pass o", "h ADDED c@3", "repair o"},
		},
		"HandedOver": {
			"a child with a new owner is deleted for the old one and added for the new one",
			func(w *harness) {
				w.deliverEvent(w.pods, owned.Added, child("c", 1, "o", "q"))
				w.handleOwner("o")
				w.journal = nil
				w.deliverEvent(w.pods, owned.Modified, child("c", 2, "p", "q"))
				w.handleOwner("o")
				w.handleOwner("p")
			},
			[]string{"pass p", "pass q", "pass o", "h DELETED c@1", "repair o", "h ADDED c@2", "repair p"},
		},
		"Labelled": {
			"a label with the uid of the owner counts like a reference",
			func(w *harness) { w.deliverEvent(w.pods, owned.Added, child("c", 1, label+"=o")); w.handleOwner("o") },
			[]string{"pass o", "h ADDED c@1", "repair o"},
		},
		"Twice": {
			"several references to one owner count once",
			func(w *harness) {
				w.deliverEvent(w.pods, owned.Added, child("c", 1, "o", "o", label+"=o"))
				w.deliverEvent(w.pods, owned.Deleted, child("c", 2, "o", "o", label+"=o"))
			},
			[]string{"pass o", "gone c", "pass o"},
		},
		"OtherKind": {
			"a child of another kind is not reported",
			func(w *harness) { w.deliverEvent(w.secrets, owned.Added, child("c", 1, "o")); w.handleOwner("o") },
			[]string{"repair o"},
		},
		"Stranger": {
			"objects without owners or with unknown owners are not reported",
			func(w *harness) {
				w.deliverEvent(w.pods, owned.Added, child("c", 1, "x"))
				w.deliverEvent(w.pods, owned.Modified, child("c", 2))
				w.deliverEvent(w.pods, owned.Deleted, child("c", 3))
				w.handleOwner("x")
			},
			[]string{"gone c", "repair x"},
		},
		"EarlierThanItsOwner": {
			"a child that is listed before its owner is reported in the pass of the owner",
			func(w *harness) {
				w.deliverEvent(w.pods, owned.Listed, child("c", 1, "late"))
				w.route.NoteEvent(ownerIdentity("late"))
				w.handleOwner("late")
			},
			[]string{"h LISTED c@1", "repair late"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, recordingHandler("h"))
			for _, one := range []string{"o", "p", "q"} {
				w.route.NoteEvent(ownerIdentity(one))
			}
			tc.act(w)
			w.want(tc.reason, tc.want...)
		})
	}
}

// TestObjectsWithoutOwners shows that objects without owners request no pass: most objects of a kind may be without
// one.
func TestObjectsWithoutOwners(t *testing.T) {
	w := newHarness(t, recordingHandler("h"))
	for _, event := range []string{owned.Listed, owned.Modified, owned.Deleted} {
		w.deliverEvent(w.pods, event, child("c", 1))
	}
	w.want("only the end is passed on, as the operator may have made the object", "gone c")
}

// TestOrderOfNews shows that children are reported in the order of namespace and name, to each handler independently.
func TestOrderOfNews(t *testing.T) {
	w := newHarness(t, recordingHandler("h"), recordingHandler("i"))
	w.route.NoteEvent(ownerIdentity("o"))
	other := child("a", 1, label+"=o")
	other.SetNamespace("other")
	w.deliverEvent(w.secrets, owned.Added, child("s", 1, "o"))
	w.deliverEvent(w.pods, owned.Added, other)
	for _, name := range []string{"e", "b", "d", "c"} {
		w.deliverEvent(w.pods, owned.Added, child(name, 1, "o"))
	}
	w.journal = nil
	w.handleOwner("o")
	w.want("by namespace, then by name",
		"h ADDED b@1", "h ADDED c@1", "h ADDED d@1", "h ADDED e@1", "h ADDED a@1",
		"i ADDED b@1", "i ADDED c@1", "i ADDED d@1", "i ADDED e@1", "i ADDED a@1", "repair o")
	w.deliverEvent(w.pods, owned.Deleted, child("c", 2, "o"))
	w.handleOwner("o")
	w.want("both handlers get the deletion", "gone c", "pass o", "h DELETED c@2", "i DELETED c@2", "repair o")
}

// TestReturnDuringDeletionCall shows that a child that returns while its deletion is handled is reported as added.
func TestReturnDuringDeletionCall(t *testing.T) {
	var w *harness
	back := func(context.Context, *handlers.Invocation) error {
		w.deliverEvent(w.pods, owned.Modified, child("c", 3, "o"))
		return nil
	}
	w = newHarness(t, recordingHandler("h", func(context.Context, *handlers.Invocation) error { return nil }, back))
	w.route.NoteEvent(ownerIdentity("o"))
	w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
	w.handleOwner("o")
	w.deliverEvent(w.pods, owned.Modified, child("c", 2))
	w.journal = nil
	w.handleOwner("o")
	w.handleOwner("o")
	w.want("the returned child is added",
		"h DELETED c@1", "pass o", "repair o", "h ADDED c@3", "repair o")
}

// TestDeletedDuringFirstCall shows that a deletion during the first call for a child is reported after the call if the
// call succeeds. A failed call is not repeated.
func TestDeletedDuringFirstCall(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		outcome error
		want    []string
	}{
		"success": {"a deletion after a successful call is reported", nil, []string{"h DELETED c@2", "repair o"}},
		"failure": {"a deletion after a failed call is not reported", errors.New("not yet"), []string{"repair o"}},
	} {
		t.Run(name, func(t *testing.T) {
			var w *harness
			w = newHarness(t, recordingHandler("h", func(context.Context, *handlers.Invocation) error {
				w.deliverEvent(w.pods, owned.Deleted, child("c", 2, "o"))
				return c.outcome
			}, func(context.Context, *handlers.Invocation) error { return nil }))
			w.route.NoteEvent(ownerIdentity("o"))
			w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
			w.handleOwner("o")
			w.want("a deletion during the call requests a pass",
				"pass o", "h ADDED c@1", "gone c", "pass o", "repair o")
			w.handleOwner("o")
			w.want(c.reason, c.want...)
			w.handleOwner("o")
			w.want("after everything was reported", "repair o")
		})
	}
}

// TestDeletionForOneHandler shows that a deletion is reported to a handler that got the child, even if other handlers
// did not.
func TestDeletionForOneHandler(t *testing.T) {
	never := func(context.Context, *cause.Cause) (bool, error) { return false, nil }
	w := newHarness(t, withOwnerFilter(recordingHandler("deaf"), never), recordingHandler("h"))
	w.route.NoteEvent(ownerIdentity("o"))
	w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
	w.handleOwner("o")
	w.want("one handler is filtered out", "pass o", "filter", "h ADDED c@1", "repair o")
	w.deliverEvent(w.pods, owned.Deleted, child("c", 2, "o"))
	w.handleOwner("o")
	w.handleOwner("o")
	w.want("the filter is not evaluated for a handler without the child",
		"gone c", "pass o", "h DELETED c@2", "repair o", "repair o")
}
