package children

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// identity is which object a child is, whatever the version in which it is declared.
type identity struct{ group, kind, namespace, name string }

// identityOf is that of a declared object.
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

func (i identity) key() types.NamespacedName {
	return types.NamespacedName{Namespace: i.namespace, Name: i.name}
}

// entry is what is remembered of a child: the version in which it was declared, and the uid of the object that was
// applied; empty as long as that is not known.
type entry struct {
	version  string
	uid      types.UID
	retained bool // it is never deleted
	run      run  // of a child that is made until it is done
}

// kind is what the child is one of.
func (i identity) in(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: i.group, Version: version, Kind: i.kind}
}

// format is the form in which a child is remembered: "apps/v1/Deployment/default/web". That of a child without a
// namespace has an empty part.
func format(i identity, version string) string {
	kind := i.in(version)
	return strings.Join([]string{kind.GroupVersion().String(), i.kind, i.namespace, i.name}, "/")
}

// parse reads what format has written.
func parse(text string) (i identity, version string, err error) {
	parts := strings.Split(text, "/")
	if len(parts) == 4 {
		parts = append([]string{""}, parts...) // the core group has no name
	}
	if len(parts) != 5 || parts[1] == "" || parts[2] == "" || parts[4] == "" {
		return i, "", fmt.Errorf("%q is not a child such as \"apps/v1/Deployment/default/web\"", text)
	}
	return identity{parts[0], parts[2], parts[3], parts[4]}, parts[1], nil
}
