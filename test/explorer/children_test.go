package explorer_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// elsewhere is a namespace in which the object can own nothing.
const elsewhere = "elsewhere"

// childHandler returns a slow handler that declares a child for each letter of the value, those of capital letters in
// another namespace, and then records its outside effect.
func (l *life) childHandler(takes time.Duration) kopf.ChangeFunc[*unstructured.Unstructured] {
	return l.declaringHandler(takes, lettersOf)
}

// childlessHandler is like childHandler, in a version of the operator that declares no children any more.
func (l *life) childlessHandler(takes time.Duration) kopf.ChangeFunc[*unstructured.Unstructured] {
	return l.declaringHandler(takes, func(*unstructured.Unstructured) []*unstructured.Unstructured { return nil })
}

// declaringHandler returns a slow handler that declares these children and then records its outside effect.
func (l *life) declaringHandler(
	takes time.Duration, childrenOf func(object *unstructured.Unstructured) []*unstructured.Unstructured,
) kopf.ChangeFunc[*unstructured.Unstructured] {
	return func(ctx context.Context, c *Change) error {
		if err := pause(ctx, takes); err != nil {
			return err
		}
		var children []any
		for _, child := range childrenOf(c.Object) {
			children = append(children, child)
		}
		if err := c.Ensure(ctx, children...); err != nil {
			return kopf.Temporary(err, 5*time.Second)
		}
		l.recordEffect(c)
		c.SetResult(map[string]any{"told": stateOf(c.Object)})
		return nil
	}
}

// waitingChildHandler returns a handler that ensures one child after the other, each after the former one is finished
// for the present value.
func (l *life) waitingChildHandler(takes time.Duration) kopf.ChangeFunc[*unstructured.Unstructured] {
	return func(ctx context.Context, c *Change) error {
		if err := pause(ctx, takes); err != nil {
			return err
		}
		for _, child := range lettersOf(c.Object) {
			if err := c.Ensure(ctx, child); err != nil {
				return kopf.Temporary(err, 5*time.Second)
			}
			if err := kopf.WaitFor(c, child, isFinished, time.Hour); err != nil {
				return err
			}
		}
		l.recordEffect(c)
		c.SetResult(map[string]any{"told": stateOf(c.Object)})
		return nil
	}
}

// isFinished reports whether a child has been finished since it was applied.
func isFinished(child *unstructured.Unstructured) bool {
	value, _, _ := unstructured.NestedString(child.Object, "data", "of")
	return child.GetAnnotations()["finished"] == value
}

// finishChildren is the controller of the children.
func finishChildren(w *harness) {
	for _, child := range w.children() {
		value, _, _ := unstructured.NestedString(child.Object, "data", "of")
		child.SetAnnotations(map[string]string{"finished": value})
		if err := w.client.Update(context.Background(), &child); client.IgnoreNotFound(err) != nil && !isConflict(err) {
			w.t.Errorf("finishing a child: %v", err)
		}
	}
}

// lettersOf returns the declared children of an object.
func lettersOf(object *unstructured.Unstructured) (all []*unstructured.Unstructured) {
	value, _, _ := unstructured.NestedString(object.Object, "spec", "value")
	for _, letter := range value {
		child := childOf(namespace, string(unicode.ToLower(letter)))
		if unicode.IsUpper(letter) {
			child.SetNamespace(elsewhere)
		}
		child.Object["data"] = map[string]any{"of": value}
		all = append(all, child)
	}
	return all
}

func childOf(namespace, name string) *unstructured.Unstructured {
	child := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	child.SetNamespace(namespace)
	child.SetName(name)
	return child
}

// touch deletes one child and edits the others, as another client.
func touch(w *harness) {
	for i, child := range w.children() {
		if i == 0 {
			if err := w.client.Delete(context.Background(), &child); client.IgnoreNotFound(err) != nil {
				w.t.Errorf("deleting a child: %v", err)
			}
			continue
		}
		child.Object["data"] = map[string]any{"of": "nobody"}
		if err := w.client.Update(context.Background(), &child); client.IgnoreNotFound(err) != nil && !isConflict(err) {
			w.t.Errorf("editing a child: %v", err)
		}
	}
}

// collectGarbage is the garbage collector: it deletes children whose owner does not exist.
func collectGarbage(w *harness) {
	object := w.object()
	for _, child := range w.children() {
		for _, owner := range child.GetOwnerReferences() {
			if object == nil || owner.UID != object.GetUID() {
				if err := w.client.Delete(context.Background(), &child); client.IgnoreNotFound(err) != nil {
					w.t.Errorf("collecting a child: %v", err)
				}
			}
		}
	}
}

// children returns all existing children.
func (w *harness) children() []unstructured.Unstructured {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("v1")
	list.SetKind("ConfigMapList")
	if err := w.client.List(context.Background(), list); err != nil {
		w.t.Errorf("listing the children: %v", err)
	}
	return list.Items
}

// childMismatches returns the unexpected and the missing children.
func (w *harness) childMismatches(object *unstructured.Unstructured) (found []string) {
	var wanted, got []string
	if object != nil {
		for _, child := range lettersOf(object) {
			value, _, _ := unstructured.NestedString(child.Object, "data", "of")
			wanted = append(wanted, child.GetNamespace()+"/"+child.GetName()+" of "+value+", "+string(object.GetUID()))
		}
	}
	for _, child := range w.children() {
		value, _, _ := unstructured.NestedString(child.Object, "data", "of")
		got = append(got, child.GetNamespace()+"/"+child.GetName()+" of "+value+", "+
			child.GetLabels()["explorer.example.org/parent-uid"])
	}
	slices.Sort(wanted)
	if slices.Sort(got); !slices.Equal(wanted, got) {
		found = append(found, fmt.Sprintf("the children are %q, not %q", got, wanted))
	}
	return found
}

// slowTransport takes its time with each request for a child, so that something can happen between two of them.
type slowTransport struct{ next http.RoundTripper }

func (s slowTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if isChild(r.URL.Path) {
		if err := pause(r.Context(), 100*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return s.next.RoundTrip(r)
}

// isChild is true for requests for children.
func isChild(path string) bool { return strings.Contains(path, "/configmaps/") }
