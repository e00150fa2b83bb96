package owned

import (
	"bytes"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
)

// AddParents records kinds whose objects may own objects of the kind. They are never removed: a removed kind may be
// served again while the informer of the children continues.
func (c *Children) AddParents(of schema.GroupKind, parents []schema.GroupKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parents == nil {
		c.parents = map[schema.GroupKind][]schema.GroupKind{}
	}
	// Functions of MayBeChild keep the former slice without a lock.
	known := slices.Clone(c.parents[of])
	for _, parent := range parents {
		if !slices.Contains(known, parent) {
			known = append(known, parent)
		}
	}
	c.parents[of] = known
}

// MayBeChild returns a filter for the metadata of objects of the kind. It returns false for an object that cannot be a
// child: it has neither the label nor an owner reference to a kind that was recorded by AddParents. The parent need not
// be known yet, and may be an object that no handler selects.
func (c *Children) MayBeChild(kind schema.GroupKind) func(metadata []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	parents, label := c.parents[kind], c.Label
	return func(metadata []byte) bool {
		// Most objects end here, without being decoded.
		if !bytes.Contains(metadata, []byte(`"ownerReferences"`)) && !bytes.Contains(metadata, []byte(label)) {
			return false
		}
		labels, references, ok := ownersIn(metadata)
		if !ok {
			// The error is reported when the object is decoded.
			return true
		}
		return labels[label] != "" ||
			slices.ContainsFunc(references, func(reference metav1.OwnerReference) bool {
				return slices.Contains(parents, ReferenceOf(reference).Kind)
			})
	}
}

// ownersIn decodes the two fields of the metadata that refer to owners. It returns false if the JSON or one of the
// fields is malformed.
func ownersIn(metadata []byte) (labels map[string]string, references []metav1.OwnerReference, ok bool) {
	ok = true
	isWhole := jsontext.EachMember(metadata, func(m jsontext.RawMember) {
		var into any
		switch string(m.Key) {
		case "labels":
			into = &labels
		case "ownerReferences":
			into = &references
		default:
			return
		}
		ok = ok && kjson.UnmarshalCaseSensitivePreserveInts(m.Value, into) == nil
	})
	return labels, references, ok && isWhole
}
