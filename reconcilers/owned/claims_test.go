package owned_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

// referring is a pod in a namespace with an owner reference that has the uid of the owner.
func referring(namespace, apiVersion, kind, name string) *unstructured.Unstructured {
	pod := child("c", 3)
	pod.SetNamespace(namespace)
	pod.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: "o"}})
	return pod
}

// An object becomes a child by an owner reference that names its owner, or by the label of an owner that has declared
// it. Otherwise no handler is called for it, no pass is requested, and no wait sees it.
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
			"a reference of any version names the owner", referring("ns", "example.org/v7", "Owner", "o"),
			types.NamespacedName{Namespace: "ns", Name: "o"}, true,
		},
		"ClusterScopedOwner": {
			"a cluster-scoped owner owns in all namespaces", referring("elsewhere", "example.org/v1", "Owner", "o"),
			types.NamespacedName{Name: "o"}, true,
		},
		"OtherNamespace": {
			"an owner with a namespace owns nothing elsewhere", referring("elsewhere", "example.org/v1", "Owner", "o"),
			types.NamespacedName{Namespace: "ns", Name: "o"}, false,
		},
		"WithoutNamespace": {
			"an owner with a namespace owns nothing cluster-scoped", referring("", "example.org/v1", "Owner", "o"),
			types.NamespacedName{Namespace: "ns", Name: "o"}, false,
		},
		"OtherKind": {
			"the uid alone does not name an owner", referring("ns", "example.org/v1", "Other", "o"),
			types.NamespacedName{Namespace: "ns", Name: "o"}, false,
		},
		"OtherGroup": {
			"the group counts", referring("ns", "example.com/v1", "Owner", "o"),
			types.NamespacedName{Namespace: "ns", Name: "o"}, false,
		},
		"NoVersion": {
			"a malformed apiVersion names nothing", referring("ns", "example.org/v1/x", "Owner", "o"),
			types.NamespacedName{Namespace: "ns", Name: "o"}, false,
		},
		"OtherName": {
			"the name counts", referring("ns", "example.org/v1", "Owner", "p"),
			types.NamespacedName{Namespace: "ns", Name: "o"}, false,
		},
		"Label": {
			"the owner has declared the child", labelled, types.NamespacedName{Namespace: "ns", Name: "o"}, true,
		},
		"LabelElsewhere": {
			"the owner has declared the child", elsewhere, types.NamespacedName{Namespace: "ns", Name: "o"}, true,
		},
		"LabelAlone": {
			"everybody can write the label", strange, types.NamespacedName{Namespace: "ns", Name: "o"}, false,
		},
		"LabelBesideForgery": {
			"the label counts beside a reference that names another owner", both,
			types.NamespacedName{Namespace: "ns", Name: "o"}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, telling("h"))
			w.strange["strange"] = true
			w.route.Seen("o", tc.key)
			w.seen(w.pods, owned.Added, tc.child)
			w.tend("o")
			want := []string{"repair o"}
			if tc.want {
				want = []string{"pass o", "h ADDED c@3", "repair o"}
			}
			w.want(tc.reason, want...)
			asked, wait := 0, waiting(waiter("w"), new(int))
			wait.Name, wait.Namespace, wait.Reached = tc.child.GetName(), tc.child.GetNamespace(), ready(&asked)
			if found, _, err := w.Await(wait); found != tc.want || err != nil {
				t.Errorf("%s: a wait finds it: %v, %v", tc.reason, found, err)
			}
			w.seen(w.pods, owned.Deleted, tc.child)
			w.tend("o")
			want = []string{"gone " + tc.child.GetName(), "repair o"}
			if tc.want {
				want = []string{"gone c", "pass o", "h DELETED c@3", "repair o"}
			}
			w.want(tc.reason, want...)
		})
	}
}
