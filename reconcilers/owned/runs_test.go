package owned_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

// What is left of what was known when a controller ends, and another one begins.
func TestRuns(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		act    func(w *world)
		want   []string
	}{
		"Owners": {
			"handlers that begin anew are told anew of what is there, as nobody knows what has happened meanwhile",
			func(w *world) {
				w.seen(w.pods, owned.Deleted, child("gone", 2, "o"))
				w.route.End()
				w.begin()
				w.route.Seen(known("o"))
			},
			[]string{"gone gone", "pass o", "forget o", "h LISTED c@1", "repair o"},
		},
		"Without": {
			"nobody makes a pass over an owner whose controller does not run",
			func(w *world) {
				w.route.End()
				w.seen(w.pods, owned.Modified, child("c", 2, "o"))
				w.seen(w.pods, owned.Modified, child("gone", 2))
				w.drifts["late"] = true
				w.seen(w.pods, owned.Added, child("late", 1, "o"))
				w.seen(w.pods, owned.Deleted, child("late", 2, "o"))
				w.begin()
				w.route.Seen(known("o"))
			},
			[]string{"forget o", "gone late", "h LISTED c@2", "repair o"},
		},
		"OtherOwners": {
			"the controllers of other kinds go on",
			func(w *world) { w.Route(schema.GroupKind{}, nil, w, func(types.NamespacedName) {}).End() },
			[]string{"repair o"},
		},
		"OwnerGone": {
			"another one is there with its children",
			func(w *world) { w.route.Gone("o"); w.route.Gone("unknown"); w.route.Seen(known("o")) },
			[]string{"forget o", "h LISTED c@1", "h LISTED gone@1", "repair o"},
		},
		"Children": {
			"they are unknown until they are listed",
			func(w *world) {
				w.pods.End()
				w.tend("o")
				w.pods = w.Watch([]*handlers.Handler{pods}, nil)
				w.seen(w.pods, owned.Listed, child("c", 5, "o"))
				w.seen(w.pods, owned.Deleted, child("gone", 5, "o"))
			},
			[]string{"repair o", "pass o", "gone gone", "h LISTED c@5", "repair o"},
		},
		"OtherChildren": {
			"the children of other kinds stay", func(w *world) { w.secrets.End() }, []string{"repair o"},
		},
		"Emptied": {
			"an owner that has lost its children may get others",
			func(w *world) {
				w.seen(w.pods, owned.Deleted, child("c", 2, "o"))
				w.seen(w.pods, owned.Deleted, child("gone", 2, "o"))
				w.tend("o")
				w.journal = nil
				w.seen(w.pods, owned.Added, child("late", 1, "o"))
			},
			[]string{"pass o", "h ADDED late@1", "repair o"},
		},
		"EmptiedUnheard": {
			"nobody has heard of those that it has lost",
			func(w *world) {
				w.route.Seen(known("p"))
				w.seen(w.pods, owned.Added, child("fleeting", 1, "p"))
				w.seen(w.pods, owned.Deleted, child("fleeting", 2, "p"))
				w.journal = nil
				w.seen(w.pods, owned.Added, child("late", 1, "p"))
			},
			[]string{"pass p", "repair o"},
		},
		"EndedWithChildren": {
			"an owner without children is an owner still",
			func(w *world) {
				w.pods.End()
				w.pods = w.Watch([]*handlers.Handler{pods}, nil)
				w.seen(w.pods, owned.Added, child("late", 1, "o"))
			},
			[]string{"pass o", "h ADDED late@1", "repair o"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, telling("h"))
			w.route.Seen(known("o"))
			w.seen(w.secrets, owned.Added, child("s", 1, "o"))
			w.seen(w.pods, owned.Added, child("c", 1, "o"))
			w.seen(w.pods, owned.Added, child("gone", 1, "o"))
			w.tend("o")
			w.journal = nil
			tc.act(w)
			w.tend("o")
			w.want(tc.reason, tc.want...)
		})
	}
}

// A handler that was called as the controller of children ended does not take away what has been listed since.
func TestEndOfChildrenMeanwhile(t *testing.T) {
	var w *world
	w = newWorld(t, telling("h", fail(nil), func(_ context.Context, _ *handlers.Invocation) error {
		w.pods.End()
		w.pods = w.Watch([]*handlers.Handler{pods}, nil)
		w.seen(w.pods, owned.Listed, child("c", 3, "o"))
		return nil
	}))
	w.route.Seen(known("o"))
	w.seen(w.pods, owned.Added, child("c", 1, "o"))
	w.tend("o")
	w.seen(w.pods, owned.Modified, child("c", 2))
	w.journal = nil
	w.tend("o")
	w.tend("o")
	w.want("it is another child by now", "h DELETED c@1", "pass o", "repair o", "h LISTED c@3", "repair o")
}

// Nor does it matter to it that the owner is gone.
func TestEndOfTheOwnerMeanwhile(t *testing.T) {
	var w *world
	w = newWorld(t, telling("h", fail(nil), func(_ context.Context, _ *handlers.Invocation) error {
		w.route.Gone("o")
		return nil
	}))
	w.route.Seen(known("o"))
	w.seen(w.pods, owned.Added, child("c", 1, "o"))
	w.tend("o")
	w.seen(w.pods, owned.Deleted, child("c", 2, "o"))
	w.journal = nil
	w.tend("o")
	w.want("its call goes to its end", "h DELETED c@2", "forget o", "repair o")
}

// A child that cannot be decoded is no child of anybody, and its informer is told why.
func TestUndecodableChildren(t *testing.T) {
	w := newWorld(t, telling("fn"))
	w.route.Seen(known("o"))
	broken, err := compact.New([]byte(`{"metadata":{"name":"c","uid":"c"},"spec":nul}`), metav1.TypeMeta{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.pods.Seen(owned.Added, broken); err == nil || !strings.Contains(err.Error(), "c") {
		t.Errorf("got %v", err)
	}
	w.tend("o")
	w.want("nobody hears of it", "repair o")
}
