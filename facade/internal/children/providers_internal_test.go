package children

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// withoutKinds is the client of a cluster that does not serve any kind.
type withoutKinds struct{ client.Client }

func (withoutKinds) RESTMapper() meta.RESTMapper { return meta.NewDefaultRESTMapper(nil) }

// unservedChildren returns children of a kind that is not served, and the keeper of their parent, which applied them
// before.
func unservedChildren(count int) (k *Keeper, parent map[string]any, all []declaredChild) {
	k, before := &Keeper{Client: withoutKinds{}, Prefix: "example.org"}, childSet{}
	parent = map[string]any{"metadata": map[string]any{"name": "home", "namespace": "default", "uid": "1"}}
	for i := range count {
		child := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Lamp"}}
		child.SetName(fmt.Sprint(i))
		child.SetNamespace("default")
		all = append(all, declaredChild{object: child, position: fmt.Sprint("child ", i)})
		before[identityOf(child)] = childEntry{version: "v1", uid: "2"}
	}
	k.memory.replaceProof("1", "default", "example.org/children-of.a", before)
	return k, parent, all
}

// TestMarkManyUnservedChildren shows that the cost of failing children is linear in their number.
func TestMarkManyUnservedChildren(t *testing.T) {
	allocations := func(count int) float64 {
		k, parent, all := unservedChildren(count)
		return testing.AllocsPerRun(1, func() {
			if marked, err := k.markChildren(t.Context(), parent, all); len(marked) > 0 || err == nil {
				t.Errorf("marked %d children of a kind that is not served: %v", len(marked), err)
			}
		})
	}
	few, many := allocations(1000), allocations(4000)
	if many > 6*few {
		t.Errorf("4000 failing children cost %.0f allocations, 1000 cost %.0f: more than linear", many, few)
	}
}

// TestMarkStopsWithItsContext shows that a call whose context has ended marks no more children.
func TestMarkStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("the handler is stopped")
	cancel(over)
	k, parent, all := unservedChildren(2)
	if _, err := k.markChildren(ctx, parent, all); err == nil || err.Error() != over.Error() {
		t.Errorf("got %v, want only %v", err, over)
	}
}

// TestAwaitedProviders shows that a failing child is retried if the parent declares its definition or its namespace,
// in this call or before, because it can exist later. Other definitions and namespaces do not help the child.
func TestAwaitedProviders(t *testing.T) {
	definition := identity{"apiextensions.k8s.io", "CustomResourceDefinition", "", "lamps.example.org"}
	other := identity{"apiextensions.k8s.io", "CustomResourceDefinition", "", "lamps.example.com"}
	home, away := identity{"", "Namespace", "", "default"}, identity{"", "Namespace", "", "elsewhere"}
	for name, tc := range map[string]struct {
		before childSet
		want   bool
	}{
		"Declared":         {childSet{definition: childEntry{version: "v1", uid: "2"}}, true},
		"Another":          {childSet{other: childEntry{version: "v1", uid: "2"}}, false},
		"Namespace":        {childSet{home: childEntry{version: "v1", uid: "2"}}, true},
		"AnotherNamespace": {childSet{away: childEntry{version: "v1", uid: "2"}}, false},
		"None":             {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			k, parent, all := unservedChildren(1)
			k.memory.replaceProof("1", "default", "example.org/children-of.b", tc.before)
			_, err := k.markChildren(t.Context(), parent, all)
			if wait := (*waitError)(nil); errors.As(err, &wait) != tc.want {
				t.Errorf("got %v, want a temporary error: %t", err, tc.want)
			}
		})
	}
}
