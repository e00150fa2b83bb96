package hierarchies_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/hierarchies"
)

// TestAdoptWhatCannotBeOwned shows D-adopt-namespace: a namespaced owner cannot own an object outside of its namespace,
// and Adopt does not change the child. With LikeKopf, it is a warning.
func TestAdoptWhatCannotBeOwned(t *testing.T) {
	t.Parallel()
	elsewhere := metav1.ObjectMeta{Name: "n", Namespace: "elsewhere"}
	for name, child := range map[string]func() metav1.Object{
		"another namespace": func() metav1.Object { return &corev1.Pod{ObjectMeta: elsewhere} },
		"another namespace, unstructured": func() metav1.Object {
			return &unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"name": "n", "namespace": "elsewhere"},
			}}
		},
		"a Namespace": func() metav1.Object { return &corev1.Namespace{} },
		"a Namespace, unstructured": func() metav1.Object {
			return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		},
	} {
		given, warned := child(), 0
		err := hierarchies.Adopt(owner(), given)
		if err == nil || !strings.Contains(err.Error(), "Ensure") || len(given.GetOwnerReferences()) > 0 {
			t.Errorf("%s: got %v and owners %v, want an error that names Ensure", name, err, given.GetOwnerReferences())
		}
		err = hierarchies.Adopt(owner(), given, hierarchies.LikeKopf(func(error) { warned++ }))
		if err != nil || warned != 1 || len(given.GetOwnerReferences()) != 1 {
			t.Errorf("%s: with LikeKopf, got the error %v and %d warnings, want one warning", name, err, warned)
		}
	}
	clusterScoped := owner()
	clusterScoped.Namespace = ""
	if err := hierarchies.Adopt(clusterScoped, &corev1.Pod{ObjectMeta: elsewhere}); err != nil {
		t.Errorf("a cluster-scoped owner can own objects of all namespaces: %v", err)
	}
}

// TestAdoptInheritsHarmlessLabels shows that labels with an effect in the cluster are not inherited, and that
// Namespaces inherit no labels.
func TestAdoptInheritsHarmlessLabels(t *testing.T) {
	t.Parallel()
	parent := owner()
	parent.Namespace = ""
	parent.Labels = map[string]string{
		"a": "1", "example.org/a": "1", "app.kubernetes.io/name": "1", "kubernetes.io/a": "2", "k8s.io/a": "2",
		"pod-security.kubernetes.io/enforce": "2", "x-k8s.io/a": "1", "networking.k8s.io/a": "2",
		"sub.app.kubernetes.io/a": "2",
	}
	harmless := map[string]string{"a": "1", "example.org/a": "1", "app.kubernetes.io/name": "1", "x-k8s.io/a": "1"}
	for name, c := range map[string]struct {
		child   metav1.Object
		options []hierarchies.AdoptOption
		want    map[string]string
	}{
		"a pod":           {&corev1.Pod{}, nil, harmless},
		"a Namespace":     {&corev1.Namespace{}, nil, map[string]string{}},
		"with the option": {&corev1.Pod{}, []hierarchies.AdoptOption{hierarchies.NoLabels()}, map[string]string{}},
		"as Kopf does it": {
			&corev1.Namespace{}, []hierarchies.AdoptOption{hierarchies.LikeKopf(func(error) {})}, parent.Labels,
		},
	} {
		if err := hierarchies.Adopt(parent, c.child, c.options...); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, c.child.GetLabels()); d != "" {
			t.Errorf("%s: the labels of the child: -want, +got:\n%s", name, d)
		}
	}
}
