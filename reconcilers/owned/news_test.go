package owned_test

import (
	"context"
	"errors"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

// What a handler is told, by what has happened to a child since it was told at last.
func TestNews(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		act    func(w *world)
		want   []string
	}{
		"Added": {
			"it is told once",
			func(w *world) { w.seen(w.pods, owned.Added, child("c", 1, "o")); w.tend("o"); w.tend("o") },
			[]string{"pass o", "h ADDED c@1", "repair o", "repair o"},
		},
		"Listed": {
			"it was there when the operator began to look",
			func(w *world) { w.seen(w.pods, owned.Listed, child("c", 1, "o")); w.tend("o") },
			[]string{"pass o", "h LISTED c@1", "repair o"},
		},
		"Modified": {
			"it is known, but not like that",
			func(w *world) {
				w.seen(w.pods, owned.Added, child("c", 1, "o"))
				w.tend("o")
				w.seen(w.pods, owned.Modified, child("c", 2, "o"))
				w.tend("o")
			},
			[]string{"pass o", "h ADDED c@1", "repair o", "pass o", "h MODIFIED c@2", "repair o"},
		},
		"Quickly": {
			"quick changes are one",
			func(w *world) {
				w.seen(w.pods, owned.Added, child("c", 1, "o"))
				w.seen(w.pods, owned.Modified, child("c", 2, "o"))
				w.tend("o")
			},
			[]string{"pass o", "pass o", "h ADDED c@2", "repair o"},
		},
		"Deleted": {
			"it is told at last how the child was",
			func(w *world) {
				w.seen(w.pods, owned.Added, child("c", 1, "o"))
				w.tend("o")
				w.seen(w.pods, owned.Deleted, child("c", 2, "o"))
				w.tend("o")
				w.tend("o")
			},
			[]string{
				"pass o", "h ADDED c@1", "repair o", "gone c", "pass o", "h DELETED c@2", "repair o", "repair o",
			},
		},
		"Fleeting": {
			"what it was never told of cannot be gone",
			func(w *world) {
				w.seen(w.pods, owned.Added, child("c", 1, "o"))
				w.seen(w.pods, owned.Deleted, child("c", 2, "o"))
				w.tend("o")
			},
			[]string{"pass o", "gone c", "pass o", "repair o"},
		},
		"Back": {
			"it has not been there all the time",
			func(w *world) {
				w.seen(w.pods, owned.Listed, child("c", 1, "o"))
				w.seen(w.pods, owned.Modified, child("c", 2))
				w.seen(w.pods, owned.Modified, child("c", 3, "o"))
				w.tend("o")
			},
			[]string{"pass o", "pass o", "pass o", "h ADDED c@3", "repair o"},
		},
		"OurOwn": {
			"it knows what it has made by itself, but not what others make of that",
			func(w *world) {
				w.ours["c@1"] = true
				w.seen(w.pods, owned.Added, child("c", 1, "o"))
				w.tend("o")
				w.seen(w.pods, owned.Modified, child("c", 2, "o"))
				w.tend("o")
			},
			[]string{"pass o", "repair o", "pass o", "h MODIFIED c@2", "repair o"},
		},
		"OurOwnGone": {
			"somebody has deleted it",
			func(w *world) {
				w.ours["c@1"] = true
				w.seen(w.pods, owned.Added, child("c", 1, "o"))
				w.tend("o")
				w.seen(w.pods, owned.Deleted, child("c", 1, "o"))
				w.tend("o")
			},
			[]string{"pass o", "repair o", "gone c", "pass o", "h DELETED c@1", "repair o"},
		},
		"Orphaned": {
			"for the owner, it is gone",
			func(w *world) {
				w.seen(w.pods, owned.Added, child("c", 1, "o"))
				w.tend("o")
				w.seen(w.pods, owned.Modified, child("c", 2))
				w.tend("o")
				w.seen(w.pods, owned.Deleted, child("c", 3))
				w.tend("o")
			},
			[]string{
				"pass o", "h ADDED c@1", "repair o", "pass o", "h DELETED c@1", "repair o", "gone c", "repair o",
			},
		},
		"Readopted": {
			"it is a new one of those that the owner has",
			func(w *world) {
				w.seen(w.pods, owned.Listed, child("c", 1, "o"))
				w.tend("o")
				w.seen(w.pods, owned.Modified, child("c", 2))
				w.tend("o")
				w.journal = nil
				w.seen(w.pods, owned.Modified, child("c", 3, "o"))
				w.tend("o")
			},
			[]string{"pass o", "h ADDED c@3", "repair o"},
		},
		"HandedOver": {
			"one owner has lost it, another one has got it, a third one keeps it",
			func(w *world) {
				w.seen(w.pods, owned.Added, child("c", 1, "o", "q"))
				w.tend("o")
				w.journal = nil
				w.seen(w.pods, owned.Modified, child("c", 2, "p", "q"))
				w.tend("o")
				w.tend("p")
			},
			[]string{"pass p", "pass q", "pass o", "h DELETED c@1", "repair o", "h ADDED c@2", "repair p"},
		},
		"Labelled": {
			"a label with the uid is as good as a reference",
			func(w *world) { w.seen(w.pods, owned.Added, child("c", 1, label+"=o")); w.tend("o") },
			[]string{"pass o", "h ADDED c@1", "repair o"},
		},
		"Twice": {
			"it has one owner, however often that is said",
			func(w *world) {
				w.seen(w.pods, owned.Added, child("c", 1, "o", "o", label+"=o"))
				w.seen(w.pods, owned.Deleted, child("c", 2, "o", "o", label+"=o"))
			},
			[]string{"pass o", "gone c", "pass o"},
		},
		"OtherKind": {
			"the handler is for pods",
			func(w *world) { w.seen(w.secrets, owned.Added, child("c", 1, "o")); w.tend("o") },
			[]string{"repair o"},
		},
		"Stranger": {
			"nobody is to be told of what a stranger owns, or nobody",
			func(w *world) {
				w.seen(w.pods, owned.Added, child("c", 1, "x"))
				w.seen(w.pods, owned.Modified, child("c", 2))
				w.seen(w.pods, owned.Deleted, child("c", 3))
				w.tend("x")
			},
			[]string{"gone c", "repair x"},
		},
		"EarlierThanItsOwner": {
			"the owner itself is what a pass is made over",
			func(w *world) {
				w.seen(w.pods, owned.Listed, child("c", 1, "late"))
				w.route.Seen(known("late"))
				w.tend("late")
			},
			[]string{"h LISTED c@1", "repair late"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, telling("h"))
			for _, one := range []string{"o", "p", "q"} {
				w.route.Seen(known(one))
			}
			tc.act(w)
			w.want(tc.reason, tc.want...)
		})
	}
}

// Most objects of a kind may have no owners at all, and be there before any that has.
func TestNobodysChildren(t *testing.T) {
	w := newWorld(t, telling("h"))
	for _, event := range []string{owned.Listed, owned.Modified, owned.Deleted} {
		w.seen(w.pods, event, child("c", 1))
	}
	w.want("only its end is of interest, to who may have made it", "gone c")
}

// All children are told of in the order of their names, and each handler knows for itself what it was told.
func TestOrderOfNews(t *testing.T) {
	w := newWorld(t, telling("h"), telling("i"))
	w.route.Seen(known("o"))
	other := child("a", 1, label+"=o")
	other.SetNamespace("other")
	w.seen(w.secrets, owned.Added, child("s", 1, "o"))
	w.seen(w.pods, owned.Added, other)
	for _, name := range []string{"e", "b", "d", "c"} {
		w.seen(w.pods, owned.Added, child(name, 1, "o"))
	}
	w.journal = nil
	w.tend("o")
	w.want("by namespace, then by name",
		"h ADDED b@1", "h ADDED c@1", "h ADDED d@1", "h ADDED e@1", "h ADDED a@1",
		"i ADDED b@1", "i ADDED c@1", "i ADDED d@1", "i ADDED e@1", "i ADDED a@1", "repair o")
	w.seen(w.pods, owned.Deleted, child("c", 2, "o"))
	w.tend("o")
	w.want("both have heard of it", "gone c", "pass o", "h DELETED c@2", "i DELETED c@2", "repair o")
}

// A child that is back while a handler is told of its end is told of anew.
func TestBackWhileToldOfItsEnd(t *testing.T) {
	var w *world
	back := func(context.Context, *handlers.Invocation) error {
		w.seen(w.pods, owned.Modified, child("c", 3, "o"))
		return nil
	}
	w = newWorld(t, telling("h", func(context.Context, *handlers.Invocation) error { return nil }, back))
	w.route.Seen(known("o"))
	w.seen(w.pods, owned.Added, child("c", 1, "o"))
	w.tend("o")
	w.seen(w.pods, owned.Modified, child("c", 2))
	w.journal = nil
	w.tend("o")
	w.tend("o")
	w.want("it is there again, and has its place",
		"h DELETED c@1", "pass o", "repair o", "h ADDED c@3", "repair o")
}

// A deletion during the first call for a child is reported after the call, if the call succeeds. A failed call is not
// repeated.
func TestDeletedDuringFirstCall(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		outcome error
		want    []string
	}{
		"success": {"the handler has seen the child", nil, []string{"h DELETED c@2", "repair o"}},
		"failure": {"the handler has not handled the child", errors.New("not yet"), []string{"repair o"}},
	} {
		t.Run(name, func(t *testing.T) {
			var w *world
			w = newWorld(t, telling("h", func(context.Context, *handlers.Invocation) error {
				w.seen(w.pods, owned.Deleted, child("c", 2, "o"))
				return c.outcome
			}, func(context.Context, *handlers.Invocation) error { return nil }))
			w.route.Seen(known("o"))
			w.seen(w.pods, owned.Added, child("c", 1, "o"))
			w.tend("o")
			w.want("a deletion needs a pass", "pass o", "h ADDED c@1", "gone c", "pass o", "repair o")
			w.tend("o")
			w.want(c.reason, c.want...)
			w.tend("o")
			w.want("nothing is left", "repair o")
		})
	}
}

// A handler that has heard of a child is told of its end, also if it is the only one.
func TestOnlyOneHasHeard(t *testing.T) {
	never := func(context.Context, *cause.Cause) (bool, error) { return false, nil }
	w := newWorld(t, where(telling("deaf"), never), telling("h"))
	w.route.Seen(known("o"))
	w.seen(w.pods, owned.Added, child("c", 1, "o"))
	w.tend("o")
	w.want("the filter says no", "pass o", "filter", "h ADDED c@1", "repair o")
	w.seen(w.pods, owned.Deleted, child("c", 2, "o"))
	w.tend("o")
	w.tend("o")
	w.want("nothing is asked of the one that knows nothing",
		"gone c", "pass o", "h DELETED c@2", "repair o", "repair o")
}
