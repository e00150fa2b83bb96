package owned_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

// TestRuns shows which knowledge of children survives the end of a run.
func TestRuns(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		act    func(w *harness)
		want   []string
	}{
		"Owners": {
			"a new run of the owners reports all children as listed, as changes in between are unknown",
			func(w *harness) {
				w.deliverEvent(w.pods, owned.Deleted, child("gone", 2, "o"))
				w.route.EndRun()
				w.startRoute()
				w.route.NoteEvent(ownerIdentity("o"))
			},
			[]string{"gone gone", "pass o", "forget o", "h LISTED c@1", "repair o"},
		},
		"Without": {
			"a child of an owner without a running controller requests no pass",
			func(w *harness) {
				w.route.EndRun()
				w.deliverEvent(w.pods, owned.Modified, child("c", 2, "o"))
				w.deliverEvent(w.pods, owned.Modified, child("gone", 2))
				w.drifted["late"] = true
				w.deliverEvent(w.pods, owned.Added, child("late", 1, "o"))
				w.deliverEvent(w.pods, owned.Deleted, child("late", 2, "o"))
				w.startRoute()
				w.route.NoteEvent(ownerIdentity("o"))
			},
			[]string{"forget o", "gone late", "h LISTED c@2", "repair o"},
		},
		"OtherOwners": {
			"the end of another owner kind has no effect",
			func(w *harness) { w.StartRoute(schema.GroupKind{}, nil, w, func(types.NamespacedName) {}).EndRun() },
			[]string{"repair o"},
		},
		"OwnerGone": {
			"a deleted owner is forgotten, and its successor gets the children as listed",
			func(w *harness) {
				w.route.NoteDeleted("o")
				w.route.NoteDeleted("unknown")
				w.route.NoteEvent(ownerIdentity("o"))
			},
			[]string{"forget o", "h LISTED c@1", "h LISTED gone@1", "repair o"},
		},
		"Children": {
			"children are unknown until their kind is listed again",
			func(w *harness) {
				w.pods.EndRun()
				w.handleOwner("o")
				w.pods = w.StartSource([]*handlers.Handler{pods}, nil)
				w.deliverEvent(w.pods, owned.Listed, child("c", 5, "o"))
				w.deliverEvent(w.pods, owned.Deleted, child("gone", 5, "o"))
			},
			[]string{"repair o", "pass o", "gone gone", "h LISTED c@5", "repair o"},
		},
		"OtherChildren": {
			"the end of another child kind has no effect", func(w *harness) { w.secrets.EndRun() },
			[]string{"repair o"},
		},
		"Emptied": {
			"an owner that lost all its children may get new ones",
			func(w *harness) {
				w.deliverEvent(w.pods, owned.Deleted, child("c", 2, "o"))
				w.deliverEvent(w.pods, owned.Deleted, child("gone", 2, "o"))
				w.handleOwner("o")
				w.journal = nil
				w.deliverEvent(w.pods, owned.Added, child("late", 1, "o"))
			},
			[]string{"pass o", "h ADDED late@1", "repair o"},
		},
		"EmptiedUnheard": {
			"an owner whose children were never reported may get new ones",
			func(w *harness) {
				w.route.NoteEvent(ownerIdentity("p"))
				w.deliverEvent(w.pods, owned.Added, child("fleeting", 1, "p"))
				w.deliverEvent(w.pods, owned.Deleted, child("fleeting", 2, "p"))
				w.journal = nil
				w.deliverEvent(w.pods, owned.Added, child("late", 1, "p"))
			},
			[]string{"pass p", "repair o"},
		},
		"EndedWithChildren": {
			"the end of all children does not end their owner",
			func(w *harness) {
				w.pods.EndRun()
				w.pods = w.StartSource([]*handlers.Handler{pods}, nil)
				w.deliverEvent(w.pods, owned.Added, child("late", 1, "o"))
			},
			[]string{"pass o", "h ADDED late@1", "repair o"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, recordingHandler("h"))
			w.route.NoteEvent(ownerIdentity("o"))
			w.deliverEvent(w.secrets, owned.Added, child("s", 1, "o"))
			w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
			w.deliverEvent(w.pods, owned.Added, child("gone", 1, "o"))
			w.handleOwner("o")
			w.journal = nil
			tc.act(w)
			w.handleOwner("o")
			w.want(tc.reason, tc.want...)
		})
	}
}

// TestEndOfChildrenMeanwhile shows that a call that spans the end of its controller does not remove children listed
// since.
func TestEndOfChildrenMeanwhile(t *testing.T) {
	var w *harness
	w = newHarness(t, recordingHandler("h", fail(nil), func(_ context.Context, _ *handlers.Invocation) error {
		w.pods.EndRun()
		w.pods = w.StartSource([]*handlers.Handler{pods}, nil)
		w.deliverEvent(w.pods, owned.Listed, child("c", 3, "o"))
		return nil
	}))
	w.route.NoteEvent(ownerIdentity("o"))
	w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
	w.handleOwner("o")
	w.deliverEvent(w.pods, owned.Modified, child("c", 2))
	w.journal = nil
	w.handleOwner("o")
	w.handleOwner("o")
	w.want("the child that was listed during the call is reported",
		"h DELETED c@1", "pass o", "repair o", "h LISTED c@3", "repair o")
}

// TestEndOfTheOwnerMeanwhile shows that the deletion of the owner does not disturb a running call.
func TestEndOfTheOwnerMeanwhile(t *testing.T) {
	var w *harness
	w = newHarness(t, recordingHandler("h", fail(nil), func(_ context.Context, _ *handlers.Invocation) error {
		w.route.NoteDeleted("o")
		return nil
	}))
	w.route.NoteEvent(ownerIdentity("o"))
	w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
	w.handleOwner("o")
	w.deliverEvent(w.pods, owned.Deleted, child("c", 2, "o"))
	w.journal = nil
	w.handleOwner("o")
	w.want("the call is completed", "h DELETED c@2", "forget o", "repair o")
}

// TestUndecodableChildren shows that an undecodable child belongs to no owner, and that the informer gets the error.
func TestUndecodableChildren(t *testing.T) {
	w := newHarness(t, recordingHandler("fn"))
	w.route.NoteEvent(ownerIdentity("o"))
	broken, err := compact.New([]byte(`{"metadata":{"name":"c","uid":"c"},"spec":nul}`), metav1.TypeMeta{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.pods.HandleEvent(owned.Added, broken); err == nil || !strings.Contains(err.Error(), "c") {
		t.Errorf("got %v", err)
	}
	w.handleOwner("o")
	w.want("the child is not reported", "repair o")
}
