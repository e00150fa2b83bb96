package owned_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

// waiter returns a handler of changes that waits for a child.
func waiter(id string) *handlers.Handler { return &handlers.Handler{ID: id} }

// ready returns a condition that is met from version 3 on and fails for version 9. It counts its evaluations.
func ready(asked *int) func(map[string]any) (bool, error) {
	return func(child map[string]any) (bool, error) {
		*asked++
		version := patching.ResourceVersion(child)
		if version == "9" {
			return false, errBad
		}
		return version >= "3", nil
	}
}

// childWait returns a wait for pod c of owner o.
func childWait(h *handlers.Handler, asked *int) owned.ChildWait {
	return owned.ChildWait{
		Owner: "o", Handler: h, Change: "change", Kind: schema.GroupKind{Group: "example.org", Kind: "Pod"},
		Namespace: "ns", Name: "c", IsReached: ready(asked),
	}
}

// await starts the wait and checks that it is not over.
func (w *harness) await(wait owned.ChildWait) {
	w.t.Helper()
	if found, reached, err := w.StartWait(wait); reached || err != nil {
		w.t.Errorf("got found %v, reached %v, error %v; want a wait that goes on", found, reached, err)
	}
}

// TestAwait shows the result of a wait, and whether its handler is due afterwards.
func TestAwait(t *testing.T) {
	deleted := child("c", 3, "o")
	now := metav1.Now()
	deleted.SetDeletionTimestamp(&now)
	clusterWide, elsewhere, otherKind := child("c", 3, label+"=o"), child("c", 3, label+"=o"), child("c", 3, "o")
	clusterWide.SetNamespace("")
	elsewhere.SetNamespace("elsewhere")
	otherKind.SetKind("Secret")
	for name, tc := range map[string]struct {
		reason         string
		child          *unstructured.Unstructured
		found, reached bool
		err            error
		awake          bool // without a change
	}{
		"None": {"a missing child is not found", nil, false, false, nil, false},
		"Unready": {"a child that does not meet the condition is found, but not reached",
			child("c", 1, "o"), true, false, nil, false},
		"Ready": {"a child that meets the condition ends the wait at once",
			child("c", 3, "o"), true, true, nil, true},
		"Broken": {"a failing condition is returned to the handler and ends the wait",
			child("c", 9, "o"), true, false, errBad, true},
		"Deleted":     {"a child in deletion is not found", deleted, false, false, nil, false},
		"OtherName":   {"a child of another name is not found", child("d", 3, "o"), false, false, nil, false},
		"OtherKind":   {"a child of another kind is not found", otherKind, false, false, nil, false},
		"Elsewhere":   {"a child in another namespace is not found", elsewhere, false, false, nil, false},
		"ClusterWide": {"a cluster-scoped child is found by its name", clusterWide, true, true, nil, true},
		"Stranger":    {"an object of another owner is not found", child("c", 3, "p"), false, false, nil, false},
		"Outdated": {"a state from before the operator's last write is not found",
			child("c", 4, "o"), false, false, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t)
			w.outdated["c@4"] = true
			w.route.NoteEvent(ownerIdentity("o"))
			if tc.child != nil {
				w.deliverEvent(w.pods, owned.Added, tc.child)
			}
			asked := 0
			h := waiter("h")
			found, reached, err := w.StartWait(childWait(h, &asked))
			if found != tc.found || reached != tc.reached || !errors.Is(err, tc.err) {
				t.Errorf("%s: got found %v, reached %v, error %v", tc.reason, found, reached, err)
			}
			for range 2 {
				if awake := w.ShouldWake("o", h, "change"); awake != tc.awake {
					t.Errorf("%s: due: %v", tc.reason, awake)
				}
			}
			if tc.found != (asked == 1) {
				t.Errorf("the condition was evaluated %d times for an unchanged child", asked)
			}
		})
	}
}

// TestAwaitWithoutAController shows that handlers of an object without a running controller never wait.
func TestAwaitWithoutAController(t *testing.T) {
	asked := 0
	h := waiter("h")
	w := newHarness(t)
	w.await(childWait(h, &asked))
	if !w.ShouldWake("o", h, "change") {
		t.Error("not due although the object is unknown")
	}
	w.deliverEvent(w.pods, owned.Listed, child("c", 1, "o"))
	w.await(childWait(h, &asked))
	if !w.ShouldWake("o", h, "change") {
		t.Error("not due although only the children of the object are known")
	}
	w.route.NoteEvent(ownerIdentity("o"))
	w.await(childWait(h, &asked))
	w.route.NoteDeleted("o")
	if !w.ShouldWake("o", h, "change") {
		t.Error("not due although the object is gone")
	}
	w.want("an unknown object gets no pass", "forget o")
}

// TestAwake shows which events make a waiting handler due.
func TestAwake(t *testing.T) {
	modified := func(version int, owner string) func(*harness) {
		return func(w *harness) { w.deliverEvent(w.pods, owned.Modified, child("c", version, owner)) }
	}
	deleted := func(w *harness) { w.deliverEvent(w.pods, owned.Deleted, child("c", 3, "o")) }
	for name, tc := range map[string]struct {
		reason string
		act    func(w *harness)
		change string
		want   bool
	}{
		"Nothing": {"without an event the handler is not due", func(*harness) {}, "change", false},
		"Unready": {"a change that does not meet the condition does not make the handler due",
			modified(2, "o"), "change", false},
		"Ready":   {"a change that meets the condition makes the handler due", modified(3, "o"), "change", true},
		"Broken":  {"a failing condition makes the handler due", modified(9, "o"), "change", true},
		"Change":  {"a change of the object itself makes the handler due", func(*harness) {}, "another", true},
		"Deleted": {"the deletion of the child does not make the handler due", deleted, "change", false},
		"Lost": {"a child that moves to another owner does not make the handler due",
			modified(3, "p"), "change", false},
		"Gone": {"a change of the object makes the handler due after the deletion of the child",
			deleted, "another", true},
		"Forgotten": {"the end of the watch does not make the handler due",
			func(w *harness) { w.pods.EndRun() }, "change", false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			h := waiter("h")
			w := newHarness(t, recordingHandler("tending"))
			w.route.NoteEvent(ownerIdentity("o"))
			w.route.NoteEvent(ownerIdentity("p"))
			w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
			w.handleOwner("o")
			w.await(childWait(h, &asked))
			tc.act(w)
			for range 2 {
				if got := w.ShouldWake("o", h, tc.change); got != tc.want {
					t.Errorf("%s: due: %v, want %v", tc.reason, got, tc.want)
				}
			}
		})
	}
}
