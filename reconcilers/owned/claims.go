package owned

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

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
