package hierarchies_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/hierarchies"
)

// owner returns a typed object with its kind, as handlers get it.
func owner() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "own", Namespace: "ons", UID: "ouid", Labels: map[string]string{"ol": "ov", "x": "owner"},
		},
	}
}

func reference() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: "v1", Kind: "ConfigMap", Name: "own", UID: "ouid",
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}
}

func TestAdoptTyped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		child   metav1.ObjectMeta
		options []hierarchies.AdoptOption
		want    metav1.ObjectMeta
	}{
		"without anything": {
			metav1.ObjectMeta{}, nil,
			metav1.ObjectMeta{GenerateName: "own-", Namespace: "ons", Labels: owner().Labels},
		},
		"with all of its own": {
			metav1.ObjectMeta{Name: "n", Namespace: "ons", Labels: map[string]string{"x": "child"}}, nil,
			metav1.ObjectMeta{Name: "n", Namespace: "ons", Labels: map[string]string{"x": "child", "ol": "ov"}},
		},
		"with the beginning of a name": {
			metav1.ObjectMeta{GenerateName: "g-"}, nil,
			metav1.ObjectMeta{GenerateName: "g-", Namespace: "ons", Labels: owner().Labels},
		},
		"forced": {
			metav1.ObjectMeta{Name: "n", Namespace: "ns", Labels: map[string]string{"x": "child"}},
			[]hierarchies.AdoptOption{hierarchies.Forced()},
			metav1.ObjectMeta{GenerateName: "own-", Namespace: "ons", Labels: owner().Labels},
		},
		"strict": {
			metav1.ObjectMeta{}, []hierarchies.AdoptOption{hierarchies.Strict()},
			metav1.ObjectMeta{Name: "own", Namespace: "ons", Labels: owner().Labels},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{ObjectMeta: c.child}
			for range 2 { // the second time changes nothing
				if err := hierarchies.Adopt(owner(), pod, c.options...); err != nil {
					t.Fatal(err)
				}
				c.want.OwnerReferences = []metav1.OwnerReference{reference()}
				if delta := cmp.Diff(c.want, pod.ObjectMeta); delta != "" {
					t.Errorf("the metadata of the adopted pod: -want, +got:\n%s", delta)
				}
			}
		})
	}
}

// TestNestedInAMixedList shows that with objects of several types, at least one of them must have the path.
func TestNestedInAMixedList(t *testing.T) {
	t.Parallel()
	want := map[string]string{"l": "1"}
	job, pod, config := &batchv1.Job{}, &corev1.Pod{}, &corev1.ConfigMap{}
	pods := &corev1.PodList{Items: make([]corev1.Pod, 1)}
	raw := map[string]any{"spec": map[string]any{}}
	path := hierarchies.Nested("spec.template")
	for name, label := range map[string]func(children any) error{
		"Label": func(children any) error { return hierarchies.Label(children, want, path) },
		"Adopt": func(children any) error {
			labelled := owner()
			labelled.SetLabels(want)
			return hierarchies.Adopt(labelled, children, path)
		},
	} {
		job.Spec.Template.Labels, pod.Labels = nil, nil
		if err := label([]any{pod, config, raw, pods, job}); err != nil {
			t.Errorf("%s: a list with one object that has the path must be accepted: %v", name, err)
		}
		if d := cmp.Diff(want, job.Spec.Template.Labels); d != "" || pod.Labels["l"] != "1" {
			t.Errorf("%s: the pod has labels %v, the template of the job: -want, +got:\n%s", name, pod.Labels, d)
		}
		err := label([]any{pod, raw, pods})
		const text = "labelling spec.template: there is no field spec.template in *v1.Pod"
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: a list without the path must be an error, got %v", name, err)
		}
		if err := label([]any{raw}); err != nil {
			t.Errorf("%s: a mapping without the path must be accepted: %v", name, err)
		}
	}
}

// TestAdoptNestedTyped covers templates in a struct, in nested structs, and behind a nil pointer.
func TestAdoptNestedTyped(t *testing.T) {
	t.Parallel()
	job, cron := &batchv1.Job{}, &batchv1.CronJob{}
	deployment := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"x": "template"}},
	}}}
	err := hierarchies.Adopt(owner(), []client.Object{job, deployment}, hierarchies.Nested("spec.template"))
	if err != nil {
		t.Fatal(err)
	}
	if err := hierarchies.Adopt(owner(), cron, hierarchies.Nested("spec.jobTemplate.spec.template")); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"ol": "ov", "x": "owner"}
	for _, got := range []map[string]string{
		job.Spec.Template.Labels, cron.Spec.JobTemplate.Spec.Template.Labels, job.Labels,
	} {
		if delta := cmp.Diff(want, got); delta != "" {
			t.Errorf("the labels of the object and its template: -want, +got:\n%s", delta)
		}
	}
	if delta := cmp.Diff(map[string]string{"ol": "ov", "x": "template"}, deployment.Spec.Template.Labels); delta != "" {
		t.Errorf("the labels of a labelled template: -want, +got:\n%s", delta)
	}
	absent := &corev1.ReplicationController{}
	err = hierarchies.Label(absent, want, hierarchies.Nested("spec.template"))
	if err != nil || absent.Spec.Template != nil {
		t.Errorf("an absent template must stay absent: error %v, template %v", err, absent.Spec.Template)
	}
}

// TestChildren covers all types that are accepted as children.
func TestChildren(t *testing.T) {
	t.Parallel()
	pods := []corev1.Pod{{}, {}}
	pod, raw, none := &corev1.Pod{}, map[string]any{}, (*corev1.Pod)(nil)
	dynamic, list := &unstructured.Unstructured{}, &corev1.PodList{Items: []corev1.Pod{{}, {}}}
	dynamics := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{{Object: map[string]any{}}}}
	byName := map[string]*corev1.Pod{"a": {}}
	err := hierarchies.Label([]any{
		pods, &pods[1], nil, none, pod, raw, dynamic, list, dynamics, [][]client.Object{{&corev1.Secret{}}, nil},
		maps.Values(byName), slices.Values([]*corev1.Pod{nil}), &[]*corev1.Pod{},
	}, map[string]string{"a": "b"})
	if err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]map[string]string{
		"an item of a slice": pods[0].Labels, "an object": pod.Labels, "an untyped one": dynamic.GetLabels(),
		"a mapping": (&unstructured.Unstructured{Object: raw}).GetLabels(), "an item of a list": list.Items[1].Labels,
		"an item of an untyped list": dynamics.Items[0].GetLabels(), "a value of an iterator": byName["a"].Labels,
	} {
		if got["a"] != "b" {
			t.Errorf("%s must be labelled", what)
		}
	}
}

// TestErrors covers invalid values: the error names their place.
func TestErrors(t *testing.T) {
	t.Parallel()
	nameless, kindless := owner(), owner()
	nameless.Name, kindless.TypeMeta = "", metav1.TypeMeta{}
	labels := map[string]string{"a": "b"}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a struct":              {hierarchies.Label(corev1.Pod{}, labels), "v1.Pod is not an object"},
		"a scalar":              {hierarchies.Label([]any{nil, "x"}, labels), "item 1: a string is not an object"},
		"deep within":           {hierarchies.Label([]any{[]any{1}}, labels), "item 0: item 0: a int"},
		"a nil mapping":         {hierarchies.Label(map[string]any(nil), labels), "nil"},
		"odd metadata":          {hierarchies.Label(map[string]any{"metadata": "x"}, labels), "metadata is a string"},
		"no owner":              {hierarchies.Adopt(nil, nil), "there is no owner"},
		"a nil owner":           {hierarchies.Adopt((*corev1.Pod)(nil), nil), "there is no owner"},
		"an owner without kind": {hierarchies.Adopt(kindless, nil), "hierarchies.Scheme"},
		"an owner without name": {hierarchies.Adopt(nameless, nil), "the name is empty"},
		"an invalid path": {
			hierarchies.Label(nil, labels, hierarchies.Nested("a..b")), "invalid path a..b",
		},
		"a path that the type lacks": {
			hierarchies.Label(&appsv1.Deployment{}, labels, hierarchies.Nested("spec.tmplate")),
			"there is no field spec.tmplate in *v1.Deployment",
		},
		"a field without metadata": {
			hierarchies.Label(&appsv1.Deployment{}, labels, hierarchies.Nested("spec.strategy")), "has no metadata",
		},
		"a path through a number": {
			hierarchies.Label(&appsv1.Deployment{}, labels, hierarchies.Nested("spec.paused.x")), "it has no fields",
		},
		"a nested scalar": {
			hierarchies.Label(map[string]any{"spec": "x"}, labels, hierarchies.Nested("spec")), "spec is a string",
		},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: got the error %v, want one with %q", name, c.err, c.want)
		}
	}
}

func TestSchemeFindsTheKind(t *testing.T) {
	t.Parallel()
	kindless := owner()
	kindless.TypeMeta = metav1.TypeMeta{}
	got, err := hierarchies.OwnerReference(kindless, hierarchies.Scheme(clientgoscheme.Scheme))
	if delta := cmp.Diff(reference(), got); err != nil || delta != "" {
		t.Errorf("the owner reference: error %v, -want, +got:\n%s", err, delta)
	}
	about, err := hierarchies.ObjectReference(owner())
	want := corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "own", Namespace: "ons", UID: "ouid"}
	if delta := cmp.Diff(want, about); err != nil || delta != "" {
		t.Errorf("the object reference: error %v, -want, +got:\n%s", err, delta)
	}
}
