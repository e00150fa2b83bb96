package memapi

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// define serves what a custom resource definition says, or stops that.
func (s *Server) define(t target, before, after map[string]any) {
	if t.groupResource() != definitions {
		return
	}
	is := served(after)
	for _, was := range served(before) {
		still := false
		for _, r := range is {
			still = still || r.Plural == was.Plural && r.Version == was.Version
		}
		if !still && after == nil {
			s.remove(was.Group, was.Plural)
		} else if !still {
			s.drop(was.Group, was.Version, was.Plural)
		}
	}
	for _, r := range is {
		s.install(r)
	}
}

// served are the resources of a definition, one for each version.
func served(definition map[string]any) []Resource {
	if definition == nil {
		return nil
	}
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(definition, append([]string{"spec"}, path...)...)
		return value
	}
	texts := func(path ...string) []string {
		value, _, _ := unstructured.NestedStringSlice(definition, append([]string{"spec"}, path...)...)
		return value
	}
	var all []Resource
	versions, _, _ := unstructured.NestedSlice(definition, "spec", "versions")
	for _, item := range versions {
		version, _ := item.(map[string]any)
		if version["served"] != true {
			continue
		}
		name, _ := version["name"].(string)
		_, status, _ := unstructured.NestedMap(version, "subresources", "status")
		all = append(all, Resource{
			Group: text("group"), Version: name, Kind: text("names", "kind"), Plural: text(
				"names", "plural",
			), Singular: text("names", "singular"),
			ShortNames: texts("names", "shortNames"), Categories: texts("names", "categories"),
			Namespaced: text("scope") == "Namespaced", StatusSubresource: status,
		})
	}
	return all
}
