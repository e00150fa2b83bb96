package owned

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Reference is the kind and name of the owner in an owner reference. The uid is compared separately.
type Reference struct {
	Kind schema.GroupKind
	Name string
}

// ReferenceOf converts an owner reference.
func ReferenceOf(reference metav1.OwnerReference) Reference {
	version, err := schema.ParseGroupVersion(reference.APIVersion)
	if err != nil {
		// An invalid version does not name any owner. The zero value matches no kind.
		return Reference{}
	}
	return Reference{schema.GroupKind{Group: version.Group, Kind: reference.Kind}, reference.Name}
}

// NamesOwner reports whether the reference, in an object of this namespace, names an owner of this kind and key. As for
// the garbage collector, a namespaced owner can only own objects of its own namespace.
func (r Reference) NamesOwner(kind schema.GroupKind, owner types.NamespacedName, namespace string) bool {
	return r.Kind == kind && r.Name == owner.Name && (owner.Namespace == "" || owner.Namespace == namespace)
}

// claim is the part of an object that refers to one owner. It is not trustworthy: any client that may write the object
// can set it.
type claim struct {
	uid        types.UID
	references []Reference
	labelled   bool // by the label with the uid of the owner
}

// claimsOf returns the claims of an object, one for each owner.
func (c *Children) claimsOf(object *unstructured.Unstructured) (all []claim) {
	// An object can have ten thousand owner references, so a linear search would be quadratic.
	indices := map[types.UID]int{}
	at := func(uid types.UID) *claim {
		i, found := indices[uid]
		if !found {
			i = len(all)
			all, indices[uid] = append(all, claim{uid: uid}), i
		}
		return &all[i]
	}
	if uid := types.UID(object.GetLabels()[c.Label]); uid != "" {
		at(uid).labelled = true
	}
	for _, reference := range object.GetOwnerReferences() {
		if reference.UID != "" {
			one := at(reference.UID)
			one.references = append(one.references, ReferenceOf(reference))
		}
	}
	return all
}

// isOwnerOf reports whether an owner reference of the child names this owner. If only the label names it, undecided is
// true: the owner must have declared the child, which [Children.isDeclared] finds out. The caller holds the lock.
func (o *owner) isOwnerOf(one *child) (owns, undecided bool) {
	if o.route == nil {
		return false, false
	}
	return one.isChildOf(o.route.kind, o.key)
}

// isChildOf is [owner.isOwnerOf] for an owner that need not have an entry.
func (c *child) isChildOf(kind schema.GroupKind, owner types.NamespacedName) (owns, undecided bool) {
	owns = slices.ContainsFunc(c.claim.references, func(reference Reference) bool {
		return reference.NamesOwner(kind, owner, c.object.GetNamespace())
	})
	return owns, !owns && c.claim.labelled
}

// isDeclared reports whether the owner has declared the child. It reads the cache of the owners, so the caller must not
// hold the lock.
func (c *Children) isDeclared(r *Route, key types.NamespacedName, of types.UID, child *unstructured.Unstructured) bool {
	return c.Author.DeclaredMatcher(of, r.latestOwner(key, of))(child)
}
