package owned_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// waiter is a handler of changes that waits for a child.
func waiter(id string) *handlers.Handler { return &handlers.Handler{ID: id} }

// ready tells whether a child is at version 3 or above; version 9 cannot be judged. It counts the questions.
func ready(asked *int) func(map[string]any) (bool, error) {
	return func(child map[string]any) (bool, error) {
		*asked++
		version := patching.VersionOf(child)
		if version == "9" {
			return false, errBad
		}
		return version >= "3", nil
	}
}

// waiting is a wait for pod c of owner o.
func waiting(h *handlers.Handler, asked *int) owned.Wait {
	return owned.Wait{
		Owner: "o", Handler: h, Change: "change", Kind: schema.GroupKind{Group: "example.org", Kind: "Pod"},
		Namespace: "ns", Name: "c", Reached: ready(asked),
	}
}

// await begins the wait, which goes on.
func (w *world) await(wait owned.Wait) {
	w.t.Helper()
	if found, reached, err := w.Await(wait); reached || err != nil {
		w.t.Errorf("got found %v, reached %v, error %v; want a wait that goes on", found, reached, err)
	}
}

// What a handler is told that asks for a child, and whether it is to be called for that once more.
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
		"None":        {"it is not there yet", nil, false, false, nil, false},
		"Unready":     {"it is there, but not as it should be", child("c", 1, "o"), true, false, nil, false},
		"Ready":       {"there is nothing to wait for", child("c", 3, "o"), true, true, nil, true},
		"Broken":      {"the handler has the error, and does not wait", child("c", 9, "o"), true, false, errBad, true},
		"Deleted":     {"it will not be there for long", deleted, false, false, nil, false},
		"OtherName":   {"it is another child", child("d", 3, "o"), false, false, nil, false},
		"OtherKind":   {"it is another child of the same name", otherKind, false, false, nil, false},
		"Elsewhere":   {"it is another one of the same kind", elsewhere, false, false, nil, false},
		"ClusterWide": {"there is but one of that name", clusterWide, true, true, nil, true},
		"Stranger":    {"it is no child of the object", child("c", 3, "p"), false, false, nil, false},
		"Outdated":    {"the operator has made something else of it", child("c", 4, "o"), false, false, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.old["c@4"] = true
			w.route.Seen(known("o"))
			if tc.child != nil {
				w.seen(w.pods, owned.Added, tc.child)
			}
			asked := 0
			h := waiter("h")
			found, reached, err := w.Await(waiting(h, &asked))
			if found != tc.found || reached != tc.reached || !errors.Is(err, tc.err) {
				t.Errorf("%s: got found %v, reached %v, error %v", tc.reason, found, reached, err)
			}
			for range 2 {
				if awake := w.Awake("o", h, "change"); awake != tc.awake {
					t.Errorf("%s: it is to be called: %v", tc.reason, awake)
				}
			}
			if tc.found != (asked == 1) {
				t.Errorf("got %d questions about a child that has not changed", asked)
			}
		})
	}
}

// An object whose controller does not run waits for nothing: its handlers are called as they are due.
func TestAwaitWithoutAController(t *testing.T) {
	asked := 0
	h := waiter("h")
	w := newWorld(t)
	w.await(waiting(h, &asked))
	if !w.Awake("o", h, "change") {
		t.Error("nothing is known of the object")
	}
	w.seen(w.pods, owned.Listed, child("c", 1, "o"))
	w.await(waiting(h, &asked))
	if !w.Awake("o", h, "change") {
		t.Error("its children are known, but not itself")
	}
	w.route.Seen(known("o"))
	w.await(waiting(h, &asked))
	w.route.Gone("o")
	if !w.Awake("o", h, "change") {
		t.Error("it is gone")
	}
	w.want("no pass is made over an object that nobody knows", "forget o")
}

// What makes a waiting handler due.
func TestAwake(t *testing.T) {
	modified := func(version int, owner string) func(*world) {
		return func(w *world) { w.seen(w.pods, owned.Modified, child("c", version, owner)) }
	}
	deleted := func(w *world) { w.seen(w.pods, owned.Deleted, child("c", 3, "o")) }
	for name, tc := range map[string]struct {
		reason string
		act    func(w *world)
		change string
		want   bool
	}{
		"Nothing":   {"the child is as it was", func(*world) {}, "change", false},
		"Unready":   {"it has changed", modified(2, "o"), "change", false},
		"Ready":     {"it is as it should be", modified(3, "o"), "change", true},
		"Broken":    {"the handler is to have the error", modified(9, "o"), "change", true},
		"Change":    {"the object itself has changed", func(*world) {}, "another", true},
		"Deleted":   {"it is gone", deleted, "change", false},
		"Lost":      {"it has another owner", modified(3, "p"), "change", false},
		"Gone":      {"and the object has another change", deleted, "another", true},
		"Forgotten": {"its kind is not watched any more", func(w *world) { w.pods.End() }, "change", false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			h := waiter("h")
			w := newWorld(t, telling("tending"))
			w.route.Seen(known("o"))
			w.route.Seen(known("p"))
			w.seen(w.pods, owned.Added, child("c", 1, "o"))
			w.tend("o")
			w.await(waiting(h, &asked))
			tc.act(w)
			for range 2 {
				if got := w.Awake("o", h, tc.change); got != tc.want {
					t.Errorf("%s: it is to be called: %v, want %v", tc.reason, got, tc.want)
				}
			}
		})
	}
}
