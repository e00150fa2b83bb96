package explorer

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// names distinguishes objects with the same name by the order in which they existed. Uids differ between runs, and
// cannot be used in reports.
type names map[string][]string // the uids by label

// labelOf returns the label of an object, such as "Database shop/orders", or "Database shop/orders, number 2".
func (n *names) labelOf(o *unstructured.Unstructured) string { return n.labelWithKind(o.GetKind(), o) }

// labelWithKind returns the label of an object whose kind is not set.
func (n *names) labelWithKind(kind string, o *unstructured.Unstructured) string {
	if *n == nil {
		*n = names{}
	}
	name := o.GetName()
	if namespace := o.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	name = kind + " " + name
	uid := string(o.GetUID())
	// The first uid gets the plain name.
	if !slices.Contains((*n)[name], uid) {
		(*n)[name] = append((*n)[name], uid)
	}
	if i := slices.Index((*n)[name], uid); i > 0 {
		return fmt.Sprintf("%s, number %d", name, i+1)
	}
	return name
}
