package explorer

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// names tells objects of one name apart, by the order in which they were there.
type names map[string][]string // the uids by label

// of is the label of an object, such as "Database shop/orders", or "Database shop/orders, number 2".
func (n *names) of(o *unstructured.Unstructured) string { return n.under(o.GetKind(), o) }

// under is that of an object that does not tell its kind.
func (n *names) under(kind string, o *unstructured.Unstructured) string {
	if *n == nil {
		*n = names{}
	}
	name := o.GetName()
	if namespace := o.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	name = kind + " " + name
	uid := string(o.GetUID())
	if !slices.Contains((*n)[name], uid) {
		(*n)[name] = append((*n)[name], uid)
	}
	if i := slices.Index((*n)[name], uid); i > 0 {
		return fmt.Sprintf("%s, number %d", name, i+1)
	}
	return name
}
