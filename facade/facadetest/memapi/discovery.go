package memapi

import (
	"cmp"
	"runtime"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"
)

// defaultVerbs are the verbs of a resource without Resource.Verbs.
var defaultVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// serverVersion is the version of the real server whose behavior this one copies. Every field is set, because strict
// clients require all of them.
var serverVersion = apiversion.Info{
	Major: "1", Minor: "36", GitVersion: "v1.36.3", GitCommit: "memapi", GitTreeState: "clean",
	BuildDate: "1970-01-01T00:00:00Z", GoVersion: runtime.Version(), Compiler: runtime.Compiler,
	Platform: runtime.GOOS + "/" + runtime.GOARCH,
}

// discoveryDocument answers requests for the server itself rather than for objects: its version, groups, resources and
// schemas.
func (s *Server) discoveryDocument(parts []string) (document any, ok bool) {
	switch {
	case len(parts) == 1 && parts[0] == "version":
		return serverVersion, true
	case len(parts) == 1 && parts[0] == "api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}, true
	case len(parts) == 1 && parts[0] == "apis":
		return s.groupList(), true
	case len(parts) == 2 && parts[0] == "api":
		return s.resourceList(schema.GroupVersion{Version: parts[1]})
	case len(parts) == 2 && parts[0] == "apis":
		for _, group := range s.groupList().Groups {
			if group.Name == parts[1] {
				group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
				return group, true
			}
		}
		return nil, false
	case len(parts) == 3 && parts[0] == "apis":
		return s.resourceList(schema.GroupVersion{Group: parts[1], Version: parts[2]})
	case len(parts) == 5 && parts[0] == "openapi":
		return s.openAPIDocument(schema.GroupVersion{Group: parts[3], Version: parts[4]})
	default:
		return nil, false
	}
}

// openAPIDocument returns the schemas of one group and version as an OpenAPI 3 document. Kinds without a schema are
// left out.
func (s *Server) openAPIDocument(gv schema.GroupVersion) (document any, ok bool) {
	all := map[string]any{}
	for _, r := range s.resources {
		if r.groupVersion() != gv {
			continue
		}
		if one := s.newTarget(r, "", "").schema; one != nil {
			all[r.Kind] = one.OpenAPI()
			continue
		}
		// A resource without a definition can still limit the fields of its status.
		if r.StatusFields == nil {
			continue
		}
		fields := map[string]any{}
		for _, name := range r.StatusFields {
			fields[name] = map[string]any{}
		}
		all[r.Kind] = map[string]any{
			"properties": map[string]any{"status": map[string]any{"type": "object", "properties": fields}},
			"x-kubernetes-group-version-kind": []any{
				map[string]any{"group": gv.Group, "version": gv.Version, "kind": r.Kind},
			},
		}
	}
	return map[string]any{"components": map[string]any{"schemas": all}}, len(all) > 0
}

// groupList returns the API groups with their versions. The core group is not one of them.
func (s *Server) groupList() metav1.APIGroupList {
	list := metav1.APIGroupList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{},
	}
	for _, r := range s.resources {
		if r.Group == "" {
			continue
		}
		at := slices.IndexFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == r.Group })
		if at < 0 {
			at = len(list.Groups)
			list.Groups = append(list.Groups, metav1.APIGroup{Name: r.Group})
		}
		group := &list.Groups[at]
		one := metav1.GroupVersionForDiscovery{GroupVersion: r.groupVersion().String(), Version: r.Version}
		if !slices.Contains(group.Versions, one) {
			// A version with several kinds is listed once.
			group.Versions = append(group.Versions, one)
		}
	}
	// The preferred version is the highest one by Kubernetes' order, such as v2 before v1 before v1beta1. The stored
	// version does not matter.
	for i := range list.Groups {
		group := &list.Groups[i]
		slices.SortStableFunc(group.Versions, func(a, b metav1.GroupVersionForDiscovery) int {
			return apiversion.CompareKubeAwareVersionStrings(b.Version, a.Version)
		})
		group.PreferredVersion = group.Versions[0]
	}
	return list
}

// resourceList returns the resources of one group and version, with their subresources.
func (s *Server) resourceList(gv schema.GroupVersion) (document any, ok bool) {
	list := metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String(),
	}
	for _, r := range s.resources {
		if r.groupVersion() != gv {
			continue
		}
		one := metav1.APIResource{
			Name: r.Plural, SingularName: cmp.Or(
				r.Singular, strings.ToLower(r.Kind),
			), Namespaced: r.Namespaced, Kind: r.Kind,
			Verbs: slices.Clone(defaultVerbs), ShortNames: r.ShortNames, Categories: r.Categories,
		}
		if r.Verbs != nil {
			one.Verbs = r.Verbs
		}
		list.APIResources = append(list.APIResources, one)
		// Subresources directly follow their resource. Package devcluster depends on that order.
		if s.newTarget(r, "", "").scalePaths() != nil {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: r.Plural + "/scale", Namespaced: r.Namespaced, Group: "autoscaling", Version: "v1", Kind: "Scale",
				Verbs: []string{"get", "patch", "update"},
			})
		}
		if r.StatusSubresource {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: r.Plural + "/status", Namespaced: r.Namespaced, Kind: r.Kind, Verbs: []string{
					"get", "patch", "update",
				},
			})
		}
	}
	return list, len(list.APIResources) > 0
}
