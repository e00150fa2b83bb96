package children

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// identity is the key of a child. It has no version: the same object can be declared in any version of its API.
type identity struct{ group, kind, namespace, name string }

// identityOf returns the identity of an object. For a declared child, the namespace must be set before.
func identityOf(object *unstructured.Unstructured) identity {
	kind := object.GroupVersionKind()
	return identity{kind.Group, kind.Kind, object.GetNamespace(), object.GetName()}
}

// String names the child in messages: "ConfigMap default/settings".
func (i identity) String() string {
	kind := schema.GroupKind{Group: i.group, Kind: i.kind}
	if i.namespace == "" {
		return kind.String() + " " + i.name
	}
	return kind.String() + " " + i.namespace + "/" + i.name
}

// namespacedName returns the namespace and name for requests.
func (i identity) namespacedName() types.NamespacedName {
	return types.NamespacedName{Namespace: i.namespace, Name: i.name}
}

// childEntry is the stored state of a child. The uid is empty until the object was applied.
type childEntry struct {
	version    string
	uid        types.UID
	isRetained bool     // it is never deleted
	run        childRun // empty without UntilDone
}

// versionedKind returns the kind of the child in this version of its API.
func (i identity) versionedKind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: i.group, Version: version, Kind: i.kind}
}

// formatChild returns the form of a child in records: "apps/v1/Deployment/default/web". A cluster-scoped child has an
// empty namespace part. Records are persistent, so the form must not change.
func formatChild(i identity, version string) string {
	kind := i.versionedKind(version)
	return strings.Join([]string{kind.GroupVersion().String(), i.kind, i.namespace, i.name}, "/")
}

// parseChild reads the form that [formatChild] returns.
func parseChild(text string) (i identity, version string, err error) {
	parts := strings.Split(text, "/")
	if len(parts) == 4 {
		parts = append([]string{""}, parts...) // the core group has no name
	}
	if len(parts) != 5 || parts[1] == "" || parts[2] == "" || parts[4] == "" {
		return i, "", fmt.Errorf("%q is not a child such as \"apps/v1/Deployment/default/web\"", text)
	}
	return identity{parts[0], parts[2], parts[3], parts[4]}, parts[1], nil
}
