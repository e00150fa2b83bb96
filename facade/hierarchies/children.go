package hierarchies

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// child is one object: either a mapping, whose fields can be absent, null or empty, or a typed one.
type child struct {
	raw   map[string]any
	typed metav1.Object
	whole any // of which typed is the metadata
}

// metadata gives that of a mapping, which is made if there is none.
func (c child) metadata() (map[string]any, error) {
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

// eachObject calls the function for every object among the children, until it fails. Nil is skipped.
func eachObject(children any, act func(c child) error) (err error) {
	walkItems(children, nil, func(one item) bool {
		if err = one.err; err == nil && !one.isNil {
			err = act(one.child)
		}
		for _, i := range slices.Backward(one.path) {
			if err != nil {
				err = fmt.Errorf("item %d: %w", i, err)
			}
		}
		return err == nil
	})
	return err
}
