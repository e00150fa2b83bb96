package discovery

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Getter returns a document of the API server by its path; nil if it does not exist.
type Getter interface {
	Get(ctx context.Context, path string) ([]byte, error)
}

// documentTimeout limits the request of one document, so that a group without an answer does not delay the others for
// long.
const documentTimeout = 10 * time.Second

// TimeoutGetter is a Getter with a timeout for each document; zero is 10 seconds.
type TimeoutGetter struct {
	Getter  Getter
	Timeout time.Duration
}

// Get implements Getter.
func (l TimeoutGetter) Get(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(l.Timeout, documentTimeout))
	defer cancel()
	return l.Getter.Get(ctx, path)
}

// API is the Getter of an API server.
type API struct{ Client rest.Interface }

// Get implements Getter. A 404 is not an error, because groups and versions come and go.
func (a API) Get(ctx context.Context, path string) ([]byte, error) {
	data, err := a.Client.Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return data, err
}

// IncompleteError lists the group versions whose resources the API server could not list, for instance because an
// extension server is down.
type IncompleteError struct {
	reasons map[schema.GroupVersion]error
}

// Error returns the sorted reasons, so that repeated errors have the same text.
func (e *IncompleteError) Error() string {
	reasons := make([]string, 0, len(e.reasons))
	for _, err := range e.reasons {
		reasons = append(reasons, err.Error())
	}
	slices.Sort(reasons)
	return strings.Join(reasons, "; ")
}

// AffectsGroup reports whether the resources of any version of the group are unknown.
func (e *IncompleteError) AffectsGroup(group string) bool {
	for gv := range e.reasons {
		if gv.Group == group {
			return true
		}
	}
	return false
}

// ListResources lists the resources of the groups; the empty group is the core group. Without groups, it lists all
// groups. With an IncompleteError, it also returns the resources of the other versions.
func ListResources(ctx context.Context, server Getter, groups ...string) ([]Resource, error) {
	var all []Resource
	incomplete := &IncompleteError{reasons: map[schema.GroupVersion]error{}}
	versions, err := versionsOf(ctx, server, groups)
	if err != nil {
		return nil, err
	}
	for _, v := range versions {
		// One failing version must not hide the resources of the others.
		found, err := v.listResources(ctx, server)
		if err != nil {
			incomplete.reasons[v.GroupVersion] = err
		}
		all = append(all, found...)
	}
	// Return the resources together with the error: callers may continue with them.
	if len(incomplete.reasons) > 0 {
		return all, incomplete
	}
	return all, nil
}

// groupVersion is one version of a group that the API server serves.
type groupVersion struct {
	schema.GroupVersion
	path      string // of its document
	preferred bool   // it is the preferred version of the group
}

// versionsOf lists the versions of the groups, in the order of the API server. Nil groups are all groups.
func versionsOf(ctx context.Context, server Getter, groups []string) (all []groupVersion, err error) {
	asked := func(group string) bool { return groups == nil || slices.Contains(groups, group) }
	if asked("") {
		var core metav1.APIVersions
		if err := readRoot(ctx, server, "/api", &core); err != nil {
			return nil, err
		}
		// The core group does not have a preferred version. In Kopf, all its versions count as preferred.
		for _, name := range core.Versions {
			all = append(all, groupVersion{schema.GroupVersion{Version: name}, "/api/" + name, true})
		}
	}
	// Only the core group was requested: the other document is not needed.
	if groups != nil && !slices.ContainsFunc(groups, func(group string) bool { return group != "" }) {
		return all, nil
	}
	var list metav1.APIGroupList
	if err := readRoot(ctx, server, "/apis", &list); err != nil {
		return nil, err
	}
	// A group may have several versions. Only one of them is preferred, and selectors without a version match only it.
	for _, group := range list.Groups {
		for _, v := range group.Versions {
			if gv := (schema.GroupVersion{Group: group.Name, Version: v.Version}); asked(group.Name) {
				all = append(all, groupVersion{gv, "/apis/" + gv.String(), v.Version == group.PreferredVersion.Version})
			}
		}
	}
	return all, nil
}

// readRoot reads a document that every API server has: if it is missing, that is an error and not an empty list.
func readRoot(ctx context.Context, server Getter, path string, into any) error {
	data, err := server.Get(ctx, path)
	// Treating this as an empty list would stop the controllers of all resources.
	if err == nil && data == nil {
		return fmt.Errorf("asking the API server for %s: it has no such document", path)
	}
	return decodeDocument(data, err, path, into)
}

// readOptional reads a document that may be missing: it leaves into unchanged then.
func readOptional(ctx context.Context, server Getter, path string, into any) error {
	data, err := server.Get(ctx, path)
	if err == nil && data == nil {
		return nil
	}
	return decodeDocument(data, err, path, into)
}

// decodeDocument decodes the answer to a request, unless it is an error.
func decodeDocument(data []byte, err error, path string, into any) error {
	if err != nil {
		return fmt.Errorf("asking the API server for %s: %w", path, err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("reading %s of the API server: %w", path, err)
	}
	return nil
}

// listResources returns the resources of one version; none if the version was removed meanwhile.
func (v groupVersion) listResources(ctx context.Context, server Getter) ([]Resource, error) {
	var list metav1.APIResourceList
	if err := readOptional(ctx, server, v.path, &list); err != nil {
		return nil, err
	}
	return v.resourcesOf(list), nil
}

// resourcesOf returns the resources of a list without the subresources, whose names begin with the name of their
// resource. If the server leaves out the singular, it is the kind in lower case, as in Kopf.
func (v groupVersion) resourcesOf(list metav1.APIResourceList) (all []Resource) {
	for _, r := range list.APIResources {
		// Subresources have entries of their own in the list.
		if strings.Contains(r.Name, "/") {
			continue
		}
		all = append(all, Resource{
			GroupVersionKind: v.WithKind(r.Kind), Plural: r.Name,
			Singular:  cmp.Or(r.SingularName, strings.ToLower(r.Kind)),
			Shortcuts: r.ShortNames, Categories: r.Categories, Subresources: subresourcesOf(list, r.Name),
			Namespaced: r.Namespaced, Preferred: v.preferred, Verbs: r.Verbs,
		})
	}
	return all
}

// subresourcesOf returns the sorted names of a resource's subresources.
func subresourcesOf(list metav1.APIResourceList, plural string) (names []string) {
	for _, r := range list.APIResources {
		if name, ok := strings.CutPrefix(r.Name, plural+"/"); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
