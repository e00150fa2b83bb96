package discoverytest

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Documents are what an API server says of itself, by path.
type Documents struct {
	mu sync.Mutex
	// Of are the documents; Failing are the paths that are answered with an error; Err is the answer to everything.
	Of      map[string]any
	Failing map[string]error
	Err     error
	// Asked are the paths that were asked for.
	Asked []string
}

// Get gives nil for what is not there.
func (d *Documents) Get(_ context.Context, path string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Asked = append(d.Asked, path)
	if err := cmp.Or(d.Err, d.Failing[path]); err != nil || d.Of[path] == nil {
		return nil, err
	}
	return json.Marshal(d.Of[path])
}

// Become changes what the server says, or how.
func (d *Documents) Become(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// Add adds a resource to what there is at a path.
func (d *Documents) Add(path string, r metav1.APIResource) {
	list, _ := d.Of[path].(metav1.APIResourceList)
	list.APIResources = append(list.APIResources, r)
	d.Of[path] = list
}

// Zoo has several groups, versions and categories; one resource cannot be watched, another one not be written to.
func Zoo() *Documents {
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
	return &Documents{Of: map[string]any{
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
