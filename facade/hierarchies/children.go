package hierarchies

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// child is one object. It is either a mapping, in which fields can be absent, null or empty, or a typed object, in
// which these states are the same.
type child struct {
	// raw is set for mappings and unstructured objects, typed for all others.
	raw    map[string]any
	typed  metav1.Object
	object any // the object that typed is the metadata of
}

// ensureMetadata returns the metadata of a mapping, and creates it if it is missing or null.
func (c child) ensureMetadata() (map[string]any, error) {
	switch metadata := c.raw["metadata"].(type) {
	case map[string]any:
		return metadata, nil
	case nil:
		made := map[string]any{}
		c.raw["metadata"] = made
		return made, nil
	default:
		return nil, fmt.Errorf("its metadata is a %T, not a mapping", metadata)
	}
}

// eachObject calls act for each object among the children, and stops at the first error. Nil children are skipped. The
// error contains the position of the object in nested slices.
func eachObject(children any, act func(c child) error) (err error) {
	walkItems(children, nil, func(one item) bool {
		if err = one.err; err == nil && !one.isNil {
			err = act(one.child)
		}
		// The innermost index is wrapped first, so the text reads from the outside: "item 2: item 0: …".
		for _, i := range slices.Backward(one.path) {
			if err != nil {
				err = fmt.Errorf("item %d: %w", i, err)
			}
		}
		return err == nil
	})
	return err
}
