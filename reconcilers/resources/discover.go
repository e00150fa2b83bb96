package resources

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Getter asks the API server for a document by its path. A document that is not there is nil.
type Getter interface {
	Get(ctx context.Context, path string) ([]byte, error)
}

// Discover asks what there is: in the groups, if any are given, the empty one of which is the core; or in all.
func Discover(ctx context.Context, server Getter, groups ...string) ([]Resource, error) {
	var all []Resource
	wanted := func(group string) bool { return len(groups) == 0 || slices.Contains(groups, group) }
	if wanted("") {
		var core metav1.APIVersions
		if err := read(ctx, server, "/api", &core); err != nil {
			return nil, err
		}
		for _, version := range core.Versions {
			found, err := scan(ctx, server, "/api/"+version, schema.GroupVersion{Version: version}, true)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	if len(groups) == 1 && groups[0] == "" {
		return all, nil
	}
	var list metav1.APIGroupList
	if err := read(ctx, server, "/apis", &list); err != nil {
		return nil, err
	}
	for _, group := range list.Groups {
		if !wanted(group.Name) {
			continue
		}
		for _, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
			found, err := scan(ctx, server, "/apis/"+gv.String(), gv, version.Version == group.PreferredVersion.Version)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

func read(ctx context.Context, server Getter, path string, into any) error {
	data, err := server.Get(ctx, path)
	if err != nil {
		return fmt.Errorf("asking the API server for %s: %w", path, err)
	}
	if data == nil {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("reading %s of the API server: %w", path, err)
	}
	return nil
}

// scan gives the resources of one version. One that has gone meanwhile has none.
func scan(ctx context.Context, server Getter, path string, gv schema.GroupVersion, preferred bool) ([]Resource, error) {
	var list metav1.APIResourceList
	if err := read(ctx, server, path, &list); err != nil {
		return nil, err
	}
	var all []Resource
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") {
			continue
		}
		all = append(all, Resource{
			GroupVersionKind: gv.WithKind(r.Kind), Plural: r.Name, Singular: cmp.Or(r.SingularName, strings.ToLower(r.Kind)),
			Shortcuts: r.ShortNames, Categories: r.Categories, Subresources: subresources(list, r.Name),
			Namespaced: r.Namespaced, Preferred: preferred, Verbs: r.Verbs,
		})
	}
	return all, nil
}

func subresources(list metav1.APIResourceList, plural string) (names []string) {
	for _, r := range list.APIResources {
		if name, ok := strings.CutPrefix(r.Name, plural+"/"); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
