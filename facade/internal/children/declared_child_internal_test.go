package children

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestDeclare(t *testing.T) {
	named := metav1.ObjectMeta{Name: "a", ResourceVersion: "5", UID: "old"}
	plain := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"},
	}
	tests := map[string]struct {
		reason    string
		scheme    *runtime.Scheme
		objects   []any
		want      []string // the names
		wantError string
	}{
		"Nil": {reason: "a nil is an error", objects: []any{plain, nil}, wantError: "child 1: it is nil"},
		"TypedNil": {reason: "a typed nil is an error",
			objects: []any{(*corev1.Pod)(nil)}, wantError: "child 0: it is nil"},
		"NilInAList": {reason: "a nil in a list is an error",
			objects: []any{[]any{plain, nil}}, wantError: "child 1: it is nil"},
		"Several": {
			reason:    "each error has the index of its child, and the valid children are returned",
			want:      []string{"a", "a"},
			objects:   []any{[]any{nil, plain}, slices.Values([]any{5, plain})},
			wantError: "child 0: it is nil: leave it out, or pass an object\nchild 2: a int is not an object",
		},
		"NoObject": {reason: "a number is not an object",
			objects: []any{plain, 5}, wantError: "child 1: a int is not an object"},
		"OtherStruct": {reason: "a pointer to a struct without metadata is not an object",
			objects: []any{&struct{ A int }{}}, wantError: "is not an object"},
		"NoKind": {
			reason:    "an object without a kind is an error",
			objects:   []any{map[string]any{"metadata": plain["metadata"]}},
			wantError: "child 0: it has no kind",
		},
		"UnknownType": {
			reason: "a type that is not in the scheme is an error", scheme: runtime.NewScheme(),
			objects: []any{&corev1.Pod{ObjectMeta: named}}, wantError: "AddToScheme",
		},
		"NoName": {
			reason:    "a child with a generated name is an error, as each call would create another one",
			wantError: "child 0: ConfigMap: it has no name",
			objects:   []any{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-"}}},
		},
		"AllForms": {
			reason: "pointers, maps, apply configurations, list objects and slices are accepted",
			want:   []string{"a", "a", "a", "b", "a", "a"},
			objects: []any{
				&corev1.ConfigMap{ObjectMeta: named}, plain, &unstructured.Unstructured{Object: plain},
				corev1apply.ConfigMap("b", "default"),
				&corev1.ConfigMapList{Items: []corev1.ConfigMap{{ObjectMeta: named}}},
				[]corev1.ConfigMap{{ObjectMeta: named}},
			},
		},
		"Nothing": {reason: "an empty list of children is valid", objects: []any{[]any{}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			known := scheme.Scheme
			if tc.scheme != nil {
				known = tc.scheme
			}
			all, err := decodeChildren(known, tc.objects)
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("%s: the error is %v, want one about %q", tc.reason, err, tc.wantError)
				}
				if tc.want == nil {
					return
				}
				err = nil
			}
			var names []string
			for _, one := range all {
				names = append(names, one.object.GetName())
				if one.object.GetKind() != "ConfigMap" || one.object.GetUID() != "" ||
					one.object.GetResourceVersion() != "" {
					t.Errorf("the applied object is %v", one.object.Object)
				}
			}
			if d := cmp.Diff(tc.want, names); d != "" || err != nil {
				t.Errorf("%s: %v, -want, +got:\n%s", tc.reason, err, d)
			}
		})
	}
}

// TestDeclareLeavesOut shows that null fields and fields of the API server are not declared.
func TestDeclareLeavesOut(t *testing.T) {
	all, err := decodeChildren(scheme.Scheme, []any{map[string]any{
		"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": "a", "creationTimestamp": nil},
		"spec":   map[string]any{"none": nil, "items": []any{map[string]any{"none": nil, "n": 1}}},
		"status": map[string]any{},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"items": []any{map[string]any{"n": int64(1)}}},
	}
	if d := cmp.Diff(want, all[0].object.Object); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}
