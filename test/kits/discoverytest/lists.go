package discoverytest

import (
	"context"
	"encoding/json"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ExampleV1 is the group and version of [ServedResources].
var ExampleV1 = schema.GroupVersion{Group: "example.org", Version: "v1"}

// AllVerbs are the verbs of a resource that supports everything.
var AllVerbs = metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}

// ServedResources returns the resources of example.org/v1, after it has applied the changes. Some resources lack verbs,
// and one is a subresource with another kind than its parent.
func ServedResources(change ...func(list *metav1.APIResourceList)) *metav1.APIResourceList {
	list := &metav1.APIResourceList{GroupVersion: "example.org/v1", APIResources: []metav1.APIResource{
		{
			Name: "widgets/scale", Kind: "Scale", Group: "autoscaling", Version: "v1", Namespaced: true,
			Verbs: metav1.Verbs{"get", "patch"},
		},
		{
			Name: "widgets", SingularName: "widget", Kind: "Widget", Namespaced: true, Verbs: AllVerbs,
			ShortNames: []string{"wd"},
		},
		{Name: "widgets/status", Kind: "Widget", Namespaced: true, Verbs: metav1.Verbs{"get", "patch", "update"}},
		{Name: "clusters", Kind: "Cluster", Verbs: AllVerbs},
		{Name: "reviews", SingularName: "review", Kind: "Review", Verbs: metav1.Verbs{"create"}},
		{Name: "relics", SingularName: "relic", Kind: "Relic", Verbs: metav1.Verbs{"list", "watch"}},
	}}
	for _, f := range change {
		f(list)
	}
	return list
}

// WithResource returns a change for [ServedResources] that adds a resource with all verbs.
func WithResource(r metav1.APIResource) func(*metav1.APIResourceList) {
	r.Verbs = AllVerbs
	return func(list *metav1.APIResourceList) { list.APIResources = append(list.APIResources, r) }
}

// Lister is a discovery.Getter that computes the list of a group version.
type Lister func(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)

// Get returns the list for the path of a group version. It returns nil for all other paths, and if the Lister returns
// NotFound.
func (f Lister) Get(ctx context.Context, path string) ([]byte, error) {
	// The core group and the list of groups are not served here.
	gv, ofGroup := strings.CutPrefix(path, "/apis/")
	if !ofGroup {
		return nil, nil
	}
	list, err := f(ctx, gv)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	default:
		return json.Marshal(list)
	}
}
