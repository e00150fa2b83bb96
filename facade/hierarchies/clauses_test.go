package hierarchies_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/hierarchies"
)

// TestClausesTyped covers for typed objects the behaviour that the recorded cases cover for mappings.
func TestClausesTyped(t *testing.T) {
	t.Parallel()
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "puid", Controller: ptr.To(true)}
	changed := metav1.OwnerReference{Kind: "Changed", UID: "ouid"}
	plain := reference()
	plain.Controller, plain.BlockOwnerDeletion = nil, ptr.To(false)
	ofCluster := reference()
	ofCluster.Kind = "Node"
	cluster := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: "own", UID: "ouid"},
	}
	named := metav1.ObjectMeta{Name: "n", Namespace: "ns"}
	for name, c := range map[string]struct {
		reason string
		child  metav1.ObjectMeta
		act    func(child client.Object) error
		want   metav1.ObjectMeta
	}{
		"append beside": {
			"references to other owners stay", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{other}},
			func(child client.Object) error { return hierarchies.AppendOwnerReference(owner(), child) },
			metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{other, reference()}},
		},
		"append again": {
			"a reference with this uid is never modified",
			metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{changed}},
			func(child client.Object) error { return hierarchies.AppendOwnerReference(owner(), child) },
			metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{changed}},
		},
		"append with flags": {
			"a nil flag is omitted", metav1.ObjectMeta{},
			func(child client.Object) error {
				return hierarchies.AppendOwnerReference(owner(), child, hierarchies.Controller(nil),
					hierarchies.BlockOwnerDeletion(ptr.To(false)))
			}, metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{plain}},
		},
		"remove": {
			"only references with the uid of the owner are removed",
			metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{changed, other, reference()}},
			func(child client.Object) error { return hierarchies.RemoveOwnerReference(owner(), child) },
			metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{other}},
		},
		"name": {
			"an existing name stays", named,
			func(child client.Object) error { return hierarchies.HarmonizeNaming(child, "own") }, named,
		},
		"name by force": {
			"with Forced, generateName replaces an existing name", named,
			func(child client.Object) error {
				return hierarchies.HarmonizeNaming(child, "own", hierarchies.Forced())
			}, metav1.ObjectMeta{GenerateName: "own-", Namespace: "ns"},
		},
		"name strictly by force": {
			"with Forced and Strict, the name replaces generateName", metav1.ObjectMeta{GenerateName: "g-"},
			func(child client.Object) error {
				return hierarchies.HarmonizeNaming(child, "own", hierarchies.Forced(), hierarchies.Strict())
			}, metav1.ObjectMeta{Name: "own"},
		},
		"namespace": {
			"an existing namespace stays", named,
			func(child client.Object) error { return hierarchies.AdjustNamespace(child, "new") }, named,
		},
		"adopt by force for the whole cluster": {
			"with Forced, a cluster-scoped owner removes the namespace of its children", named,
			func(child client.Object) error { return hierarchies.Adopt(cluster, child, hierarchies.Forced()) },
			metav1.ObjectMeta{
				GenerateName: "own-", Labels: map[string]string{},
				OwnerReferences: []metav1.OwnerReference{ofCluster},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{ObjectMeta: c.child}
			if err := c.act(pod); err != nil {
				t.Fatal(err)
			}
			if delta := cmp.Diff(c.want, pod.ObjectMeta); delta != "" {
				t.Errorf("%s: -want, +got:\n%s", c.reason, delta)
			}
		})
	}
}

// TestMisshapenMappings shows that every function reports a value of an unexpected type.
func TestMisshapenMappings(t *testing.T) {
	t.Parallel()
	odd := func(key string, value any) map[string]any { return map[string]any{key: value} }
	odder := func(key string, value any) map[string]any { return odd("metadata", odd(key, value)) }
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"append":           {hierarchies.AppendOwnerReference(owner(), odd("metadata", "x")), "metadata is a string"},
		"append to a text": {hierarchies.AppendOwnerReference(owner(), odder("ownerReferences", "x")), "not a list"},
		"append of nil":    {hierarchies.AppendOwnerReference(nil, nil), "there is no owner"},
		"remove":           {hierarchies.RemoveOwnerReference(owner(), odd("metadata", 1)), "metadata is a int"},
		"remove of nil":    {hierarchies.RemoveOwnerReference(nil, nil), "there is no owner"},
		"name":             {hierarchies.HarmonizeNaming(odd("metadata", true), "own"), "metadata is a bool"},
		"empty name":       {hierarchies.HarmonizeNaming(odd("metadata", nil), ""), "the name is empty"},
		"namespace":        {hierarchies.AdjustNamespace(odd("metadata", []any{}), "ns"), "not a mapping"},
		"labels":           {hierarchies.Label(odder("labels", "x"), nil), "labels are a string"},
		"adopt":            {hierarchies.Adopt(owner(), []any{odder("ownerReferences", 1)}), "item 0"},
		"reference to nil": {
			func() error { _, err := hierarchies.ObjectReference(nil); return err }(), "it is nil",
		},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: got the error %v, want one with %q", name, c.err, c.want)
		}
	}
}

// TestObjects shows the objects that Objects yields. Unlike the functions that change objects, it also yields absent
// ones.
func TestObjects(t *testing.T) {
	t.Parallel()
	declared := applycorev1.ConfigMap("n", "ns")
	list := &appsv1.DeploymentList{Items: []appsv1.Deployment{{}, {}}}
	dynamic := &unstructured.Unstructured{}
	var got []any
	var failed []string
	children := []any{
		declared, list, (*corev1.Pod)(nil), []any{}, []any{5, dynamic}, slices.Values([]any{"x", dynamic}),
	}
	for one, err := range hierarchies.Objects(children) {
		if err != nil {
			failed = append(failed, fmt.Sprint(len(got), ": ", err))
			continue
		}
		got = append(got, one)
	}
	want := []any{declared, &list.Items[0], &list.Items[1], nil, dynamic, dynamic}
	if len(got) != len(want) {
		t.Fatalf("got the objects %v, want six", got)
	}
	if len(failed) != 2 || !strings.HasPrefix(failed[0], "4: a int is not an object") ||
		!strings.HasPrefix(failed[1], "5: a string is not an object") {
		t.Errorf("the values that are not objects must be errors, got %q", failed)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("object %d is %v, want %v", i, got[i], want[i])
		}
	}
	for one, err := range hierarchies.Objects([]any{[]any{list}, dynamic}) {
		if err != nil || one != &list.Items[0] {
			t.Errorf("the iteration must end with the loop of its caller: got %v", one)
		}
		break
	}
}
