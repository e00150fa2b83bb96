package planning

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// definitions is the kind of custom resource definitions.
var definitions = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// definition is the part of a custom resource definition that names its kind.
type definition struct {
	Spec struct {
		Group string `json:"group"`
		Scope string `json:"scope"`
		Names struct {
			Plural     string   `json:"plural"`
			Singular   string   `json:"singular"`
			Kind       string   `json:"kind"`
			ShortNames []string `json:"shortNames"`
			Categories []string `json:"categories"`
		} `json:"names"`
		Versions []struct {
			Name         string          `json:"name"`
			Served       bool            `json:"served"`
			Subresources *map[string]any `json:"subresources"`
		} `json:"versions"`
	} `json:"spec"`
}

// verbs are those of all resources of a dump.
var verbs = metav1.Verbs{"get", "list", "watch", "create", "update", "patch", "delete"}

// makeDocuments returns the documents of discovery as an API server with the kinds of the dump would answer.
func (d *Dump) makeDocuments() (map[string][]byte, error) {
	lists := map[schema.GroupVersion]*metav1.APIResourceList{}
	defined := map[schema.GroupKind]bool{}
	for _, body := range d.objects[definitions] {
		var crd definition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(body, &crd); err != nil {
			return nil, fmt.Errorf("a custom resource definition: %w", err)
		}
		defined[schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}] = true
		crd.addResources(lists)
	}
	for kind, objects := range d.objects {
		if !defined[kind] {
			addDerived(lists, kind, objects)
		}
	}
	return encodeDocuments(lists)
}

// addResources adds the versions of a custom kind that are served.
func (c *definition) addResources(lists map[schema.GroupVersion]*metav1.APIResourceList) {
	names := c.Spec.Names
	for _, v := range c.Spec.Versions {
		if !v.Served {
			continue
		}
		r := metav1.APIResource{
			Name: names.Plural, SingularName: names.Singular, Kind: names.Kind, ShortNames: names.ShortNames,
			Categories: names.Categories, Namespaced: c.Spec.Scope == "Namespaced", Verbs: verbs,
		}
		to := listOf(lists, schema.GroupVersion{Group: c.Spec.Group, Version: v.Name})
		to.APIResources = append(to.APIResources, r)
		if v.Subresources != nil && (*v.Subresources)["status"] != nil {
			r.Name += "/status"
			to.APIResources = append(to.APIResources, r)
		}
	}
}

// addDerived adds a kind without a definition: its plural is derived from the kind, and its scope from its objects.
func addDerived(
	lists map[schema.GroupVersion]*metav1.APIResourceList, kind schema.GroupKind, objects []map[string]any,
) {
	var found []schema.GroupVersion
	namespaced := false
	for _, body := range objects {
		object := unstructured.Unstructured{Object: body}
		namespaced = namespaced || object.GetNamespace() != ""
		if of := object.GroupVersionKind().GroupVersion(); !slices.Contains(found, of) {
			found = append(found, of)
		}
	}
	for _, of := range found {
		plural, singular := meta.UnsafeGuessKindToResource(of.WithKind(kind.Kind))
		to := listOf(lists, of)
		to.APIResources = append(to.APIResources, metav1.APIResource{
			Name: plural.Resource, SingularName: singular.Resource, Kind: kind.Kind, Namespaced: namespaced,
			Verbs: verbs,
		})
	}
}

// listOf returns the list of a version, and adds it if it is missing.
func listOf(
	lists map[schema.GroupVersion]*metav1.APIResourceList, of schema.GroupVersion,
) *metav1.APIResourceList {
	if lists[of] == nil {
		lists[of] = &metav1.APIResourceList{GroupVersion: of.String()}
	}
	return lists[of]
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
