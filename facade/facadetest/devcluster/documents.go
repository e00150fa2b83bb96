package devcluster

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// serveDocument answers requests that are not for objects. It reports false for requests for objects.
func (h *handler) serveDocument(w http.ResponseWriter, r *http.Request) bool {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	// Probes succeed as soon as the server listens, because objects are loaded before.
	case slices.Contains([]string{"healthz", "livez", "readyz"}, parts[0]):
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "ok")
	case r.URL.Path == "/":
		writeJSON(w, http.StatusOK, map[string]any{"paths": []string{
			"/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version",
		}})
	case parts[0] == "openapi":
		h.serveOpenAPI(w, r, parts[1:])
	case len(parts) == 1 && (parts[0] == "api" || parts[0] == "apis") && wantsAggregated(r):
		h.serveDiscovery(w, r, parts[0])
	default:
		return false
	}
	return true
}

// aggregatedContentType is the content type of aggregated discovery.
const aggregatedContentType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// wantsAggregated reports whether the client supports discovery in one document for all groups and resources.
func wantsAggregated(r *http.Request) bool {
	// Clients differ in the spaces between the parameters, so these are removed before the comparison.
	accepted := strings.ReplaceAll(strings.Join(r.Header.Values("Accept"), ","), " ", "")
	return slices.ContainsFunc(strings.Split(accepted, ","), func(clause string) bool {
		parts := strings.Split(clause, ";")
		return parts[0] == jsonContentType && slices.Contains(parts, "as=APIGroupDiscoveryList") &&
			slices.Contains(parts, "v=v2")
	})
}

// serveDiscovery writes the aggregated discovery of the core group (/api) or of all other groups (/apis).
func (h *handler) serveDiscovery(w http.ResponseWriter, r *http.Request, root string) {
	// The core group is not a part of the group list, so it is constructed here.
	groups := metav1.APIGroupList{Groups: []metav1.APIGroup{
		{Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "v1", Version: "v1"}}},
	}}
	if root == "apis" {
		groups = metav1.APIGroupList{}
		if err := h.readDocument(r, "/apis", &groups); err != nil {
			writeError(w, err)
			return
		}
	}
	all := apidiscoveryv2.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{
		APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList",
	}}
	for _, group := range groups.Groups {
		// Each group version needs a request of its own to the server in memory.
		one := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: group.Name}}
		for _, v := range group.Versions {
			var list metav1.APIResourceList
			if err := h.readDocument(r, "/"+root+"/"+v.GroupVersion, &list); err != nil {
				continue // its definition was deleted in the meantime
			}
			one.Versions = append(one.Versions, aggregatedVersion(group.Name, v.Version, list.APIResources))
		}
		all.Items = append(all.Items, one)
	}
	// Caches between client and server must distinguish the formats of discovery.
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Content-Type", aggregatedContentType)
	w.WriteHeader(http.StatusOK)
	_ = json.NewEncoder(w).Encode(all)
}

// aggregatedVersion returns the discovery of one version of a group. In the list, subresources follow their resource.
func aggregatedVersion(group, version string, list []metav1.APIResource) apidiscoveryv2.APIVersionDiscovery {
	out := apidiscoveryv2.APIVersionDiscovery{Version: version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	for _, r := range list {
		gvk := schema.GroupVersionKind{Group: group, Version: version, Kind: r.Kind}
		// The kind of a subresource can belong to another group, such as Scale to autoscaling.
		if r.Group != "" || r.Version != "" {
			gvk.Group, gvk.Version = r.Group, r.Version
		}
		kind := &metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
		// Subresources are nested in their resource, which precedes them in the list.
		if _, sub, ok := strings.Cut(r.Name, "/"); ok {
			last := len(out.Resources) - 1
			if last >= 0 {
				out.Resources[last].Subresources = append(out.Resources[last].Subresources,
					apidiscoveryv2.APISubresourceDiscovery{Subresource: sub, ResponseKind: kind, Verbs: r.Verbs})
			}
			continue
		}
		scope := apidiscoveryv2.ScopeCluster
		if r.Namespaced {
			scope = apidiscoveryv2.ScopeNamespace
		}
		out.Resources = append(out.Resources, apidiscoveryv2.APIResourceDiscovery{
			Resource: r.Name, ResponseKind: kind, Scope: scope, SingularResource: r.SingularName, Verbs: r.Verbs,
			ShortNames: r.ShortNames, Categories: r.Categories,
		})
	}
	return out
}
