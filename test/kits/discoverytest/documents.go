package discoverytest

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Documents is a discovery.Getter with fixed documents.
type Documents struct {
	mu sync.Mutex
	// ByPath are the documents by path. Failing are the paths with an error as their answer. Err is the answer to all.
	ByPath      map[string]any
	ErrorByPath map[string]error
	Err         error
	// RequestedPaths are the requested paths, in order.
	RequestedPaths []string
}

// Get returns nil for unknown paths.
func (d *Documents) Get(_ context.Context, path string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.RequestedPaths = append(d.RequestedPaths, path)
	// The error of all answers has priority over that of a path.
	if err := cmp.Or(d.Err, d.ErrorByPath[path]); err != nil || d.ByPath[path] == nil {
		return nil, err
	}
	return json.Marshal(d.ByPath[path])
}

// ChangeDocuments changes the documents under the lock, while an operator reads them.
func (d *Documents) ChangeDocuments(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// AddResource adds a resource to the document at a path.
func (d *Documents) AddResource(path string, r metav1.APIResource) {
	list, _ := d.ByPath[path].(metav1.APIResourceList)
	list.APIResources = append(list.APIResources, r)
	d.ByPath[path] = list
}

// NewZoo has several groups, versions and categories. One resource cannot be watched, another one cannot be patched.
func NewZoo() *Documents {
	// The usual resource: it is namespaced, and named like its kind with an s.
	one := func(name string, categories ...string) metav1.APIResource {
		return metav1.APIResource{Name: name, SingularName: name[:len(name)-1],
			Kind: strings.ToUpper(name[:1]) + name[1:len(name)-1], Namespaced: true,
			Verbs: metav1.Verbs{"list", "watch", "patch"}, Categories: categories}
	}
	bound, read, events := one("bindings"), one("statistics"), one("events", "all")
	bound.Verbs, read.Verbs = metav1.Verbs{"create"}, metav1.Verbs{"list", "watch"}
	version := func(group, v string) metav1.GroupVersionForDiscovery {
		return metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + v, Version: v}
	}
	return &Documents{ByPath: map[string]any{
		"/api":    metav1.APIVersions{Versions: []string{"v1"}},
		"/api/v1": metav1.APIResourceList{APIResources: []metav1.APIResource{one("pods", "all"), bound, events}},
		"/apis": metav1.APIGroupList{Groups: []metav1.APIGroup{
			{Name: "cats.org", Versions: []metav1.GroupVersionForDiscovery{
				version("cats.org", "v2"), version("cats.org", "v1"),
			}, PreferredVersion: version("cats.org", "v2")},
			{Name: "dogs.org", Versions: []metav1.GroupVersionForDiscovery{
				version("dogs.org", "v1"),
			}, PreferredVersion: version("dogs.org", "v1")},
		}},
		"/apis/cats.org/v1": metav1.APIResourceList{
			APIResources: []metav1.APIResource{one("lions", "all"), one("tigers")},
		},
		"/apis/cats.org/v2": metav1.APIResourceList{
			APIResources: []metav1.APIResource{one("lions", "all"), one("tigers")},
		},
		"/apis/dogs.org/v1": metav1.APIResourceList{APIResources: []metav1.APIResource{one("wolfs", "all"), read}},
	}}
}
