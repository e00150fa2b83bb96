package planning

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterneeds"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
)

// definitions is the kind of custom resource definitions.
var definitions = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// makeDocuments returns the documents of discovery as an API server with the kinds of the dump would answer.
func (d *Dump) makeDocuments() (map[string][]byte, error) {
	var all []discovery.Resource
	defined := map[schema.GroupKind]bool{}
	for _, body := range d.objects[definitions] {
		// A kind is also defined if none of its versions is served.
		group, _, _ := unstructured.NestedString(body, "spec", "group")
		kind, _, _ := unstructured.NestedString(body, "spec", "names", "kind")
		defined[schema.GroupKind{Group: group, Kind: kind}] = true
		text, err := json.Marshal(body)
		var found []discovery.Resource
		if err == nil {
			found, err = clusterneeds.FromCRD(text)
		}
		if err != nil {
			return nil, fmt.Errorf("a custom resource definition: %w", err)
		}
		all = append(all, found...)
	}
	for kind, objects := range d.objects {
		if !defined[kind] {
			all = append(all, derivedResources(kind, objects)...)
		}
	}
	return encodeDocuments(listsOf(all))
}

// derivedResources returns the versions of a kind without a definition: its plural is derived from the kind, and its
// scope from its objects.
func derivedResources(kind schema.GroupKind, objects []map[string]any) (all []discovery.Resource) {
	plural, singular := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
	namespaced := false
	for _, body := range objects {
		object := unstructured.Unstructured{Object: body}
		namespaced = namespaced || object.GetNamespace() != ""
		isKnown := func(r discovery.Resource) bool { return r.GroupVersionKind == object.GroupVersionKind() }
		if !slices.ContainsFunc(all, isKnown) {
			all = append(all, discovery.Resource{
				GroupVersionKind: object.GroupVersionKind(), Plural: plural.Resource, Singular: singular.Resource,
				Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
			})
		}
	}
	for i := range all {
		all[i].Namespaced = namespaced
	}
	return all
}

// listsOf returns the resources as the API server lists them: by version, and with an entry for each status.
func listsOf(all []discovery.Resource) map[schema.GroupVersion]*metav1.APIResourceList {
	lists := map[schema.GroupVersion]*metav1.APIResourceList{}
	for _, r := range all {
		list := cmp.Or(lists[r.GroupVersion()], &metav1.APIResourceList{GroupVersion: r.GroupVersion().String()})
		lists[r.GroupVersion()] = list
		one := metav1.APIResource{
			Name: r.Plural, SingularName: r.Singular, Kind: r.Kind, ShortNames: r.Shortcuts, Categories: r.Categories,
			Namespaced: r.Namespaced, Verbs: r.Verbs,
		}
		list.APIResources = append(list.APIResources, one)
		if r.HasStatus() {
			one.Name += "/status"
			list.APIResources = append(list.APIResources, one)
		}
	}
	return lists
}

// encodeDocuments encodes the lists, and the documents that name their groups and versions.
func encodeDocuments(lists map[schema.GroupVersion]*metav1.APIResourceList) (map[string][]byte, error) {
	all := map[string]any{}
	core, groups := metav1.APIVersions{}, map[string]*metav1.APIGroup{}
	for of, list := range lists {
		if of.Group == "" {
			core.Versions = append(core.Versions, of.Version)
			all["/api/"+of.Version] = list
			continue
		}
		all["/apis/"+of.String()] = list
		group := cmp.Or(groups[of.Group], &metav1.APIGroup{Name: of.Group})
		groups[of.Group] = group
		group.Versions = append(group.Versions,
			metav1.GroupVersionForDiscovery{GroupVersion: of.String(), Version: of.Version})
	}
	var named metav1.APIGroupList
	for _, group := range groups {
		// The newest stable version is the preferred one, as of an API server.
		slices.SortFunc(group.Versions, func(a, b metav1.GroupVersionForDiscovery) int {
			return version.CompareKubeAwareVersionStrings(b.Version, a.Version)
		})
		group.PreferredVersion = group.Versions[0]
		named.Groups = append(named.Groups, *group)
	}
	all["/api"], all["/apis"] = core, named
	encoded := map[string][]byte{}
	for path, document := range all {
		data, err := json.Marshal(document)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", path, err)
		}
		encoded[path] = data
	}
	return encoded, nil
}
