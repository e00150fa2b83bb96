package owned

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Reference is the part of an owner reference that names the owner, beside its uid.
type Reference struct {
	Kind schema.GroupKind
	Name string
}

// ReferenceOf reads an owner reference.
func ReferenceOf(reference metav1.OwnerReference) Reference {
	version, err := schema.ParseGroupVersion(reference.APIVersion)
	if err != nil {
		return Reference{} // it names nothing
	}
	return Reference{schema.GroupKind{Group: version.Group, Kind: reference.Kind}, reference.Name}
}

// Holds is true if the reference, in an object of this namespace, names an owner of this kind and key. As for the
// garbage collector, an owner with a namespace owns nothing outside of it.
func (r Reference) Holds(kind schema.GroupKind, owner types.NamespacedName, namespace string) bool {
	return r.Kind == kind && r.Name == owner.Name && (owner.Namespace == "" || owner.Namespace == namespace)
}

// claim is what an object says about one owner. Everybody who may write the object can say that.
type claim struct {
	uid        types.UID
	references []Reference
	labelled   bool
}

// claimsOf returns what an object says about its owners, each of them once.
func (c *Children) claimsOf(object *unstructured.Unstructured) (all []claim) {
	indices := map[types.UID]int{} // an object can have ten thousand owner references
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

// owns is true if an owner reference of the child names this owner. If it is false, and the child has the label, it is
// undecided: the owner must have declared the child, which isDeclared finds out.
func (o *owner) owns(one *child) (owns, undecided bool) {
	if o.route == nil {
		return false, false
	}
	return one.isOf(o.route.kind, o.key)
}

func (c *child) isOf(kind schema.GroupKind, owner types.NamespacedName) (owns, undecided bool) {
	owns = slices.ContainsFunc(c.claim.references, func(reference Reference) bool {
		return reference.Holds(kind, owner, c.object.GetNamespace())
	})
	return owns, !owns && c.claim.labelled
}

// isDeclared is true if the owner has declared the child. It looks into the cache, so c.mu must not be held.
func (c *Children) isDeclared(r *Route, key types.NamespacedName, of types.UID, child *unstructured.Unstructured) bool {
	return c.Author.Declared(of, r.latest(key, of))(child)
}
