package hierarchies_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/hierarchies"
)

// TestObjectsInLists shows that Objects skips empty items of lists, continues after errors in them, and ends with the
// caller's loop.
func TestObjectsInLists(t *testing.T) {
	t.Parallel()
	list := &corev1.List{Items: []runtime.RawExtension{
		{}, {Object: &metav1.Status{}}, {Object: &corev1.Pod{}}, {Object: &corev1.Secret{}},
	}}
	given := []any{map[string]any(nil), list, slices.Values([]any{1, &[]corev1.Pod{{}}})}
	want := []string{"<nil>", "error", "*v1.Pod", "*v1.Secret", "error", "*v1.Pod"}
	for count := range len(want) + 1 {
		var got []string
		for object, err := range hierarchies.Objects(given) {
			if len(got) == count {
				break
			}
			if err != nil {
				got = append(got, "error")
			} else {
				got = append(got, fmt.Sprintf("%T", object))
			}
		}
		if !slices.Equal(got, want[:count]) {
			t.Errorf("the first %d objects are %q, want %q", count, got, want[:count])
		}
	}
}
