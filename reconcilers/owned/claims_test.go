package owned_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

// referring returns a pod with an owner reference to the owner, by its uid.
func referring(namespace, apiVersion, kind, name string) *unstructured.Unstructured {
	pod := child("c", 3)
	pod.SetNamespace(namespace)
	pod.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: "o"}})
	return pod
}

// TestClaims shows that an object becomes a child by an owner reference that names its owner, or by the label of an
// owner that has declared it. Otherwise no handler is called for it, no pass is requested, and no wait finds it.
func TestClaims(t *testing.T) {
	labelled, elsewhere := child("c", 3, label+"=o"), child("c", 3, label+"=o")
	strange := child("strange", 3, label+"=o")
	elsewhere.SetNamespace("elsewhere")
	both := referring("ns", "example.org/v1", "Other", "o")
	both.SetLabels(map[string]string{label: "o"})
	for name, tc := range map[string]struct {
		reason string
		child  *unstructured.Unstructured
		key    types.NamespacedName // of the owner
		want   bool
	}{
		"Reference": {
			"a reference of any version of the kind names the owner", referring("ns", "example.org/v7", "Owner", "o"),
			types.NamespacedName{Namespace: "ns", Name: "o"}, true,
		},
		"ClusterScopedOwner": {
			"a cluster-scoped owner has children in all namespaces",
			referring("elsewhere", "example.org/v1", "Owner", "o"),
			types.NamespacedName{Name: "o"}, true,
		},
		"OtherNamespace": {
			"a namespaced owner has no children in other namespaces",
			referring("elsewhere", "example.org/v1", "Owner", "o"),
			types.NamespacedName{Namespace: "ns", Name: "o"}, false,
		},
		"WithoutNamespace": {
			"a namespaced owner has no cluster-scoped children by reference",
			referring("", "example.org/v1", "Owner", "o"),
			types.NamespacedName{Namespace: "ns", Name: "o"}, false,
		},
		"OtherKind": {
			"a reference with the uid but another kind does not name the owner",
			referring("ns", "example.org/v1", "Other", "o"),
			types.NamespacedName{Namespace: "ns", Name: "o"}, false,
		},
		"OtherGroup": {
			"a reference with another group does not name the owner", referring("ns", "example.com/v1", "Owner", "o"),
			types.NamespacedName{Namespace: "ns", Name: "o"}, false,
		},
		"NoVersion": {
			"a reference with a malformed apiVersion does not name an owner",
			referring("ns", "example.org/v1/x", "Owner", "o"),
			types.NamespacedName{Namespace: "ns", Name: "o"}, false,
		},
		"OtherName": {
			"a reference with another name does not name the owner", referring("ns", "example.org/v1", "Owner", "p"),
			types.NamespacedName{Namespace: "ns", Name: "o"}, false,
		},
		"Label": {
			"a labelled object that the owner has declared is a child",
			labelled, types.NamespacedName{Namespace: "ns", Name: "o"}, true,
		},
		"LabelElsewhere": {
			"a declared child may be in another namespace",
			elsewhere, types.NamespacedName{Namespace: "ns", Name: "o"}, true,
		},
		"LabelAlone": {
			"the label alone does not make a child, as any user can write it",
			strange, types.NamespacedName{Namespace: "ns", Name: "o"}, false,
		},
		"LabelBesideForgery": {
			"a declared child stays one beside a reference to another owner", both,
			types.NamespacedName{Namespace: "ns", Name: "o"}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, recordingHandler("h"))
			w.undeclared["strange"] = true
			w.route.NoteEvent("o", tc.key)
			w.deliverEvent(w.pods, owned.Added, tc.child)
			w.handleOwner("o")
			want := []string{"repair o"}
			if tc.want {
				want = []string{"pass o", "h ADDED c@3", "repair o"}
			}
			w.want(tc.reason, want...)
			asked, wait := 0, childWait(waiter("w"), new(int))
			wait.Name, wait.Namespace, wait.IsReached = tc.child.GetName(), tc.child.GetNamespace(), ready(&asked)
			if found, _, err := w.StartWait(wait); found != tc.want || err != nil {
				t.Errorf("%s: a wait finds the child: %v, %v", tc.reason, found, err)
			}
			w.deliverEvent(w.pods, owned.Deleted, tc.child)
			w.handleOwner("o")
			want = []string{"gone " + tc.child.GetName(), "repair o"}
			if tc.want {
				want = []string{"gone c", "pass o", "h DELETED c@3", "repair o"}
			}
			w.want(tc.reason, want...)
		})
	}
}
