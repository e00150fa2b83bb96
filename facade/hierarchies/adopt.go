package hierarchies

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Adopt makes the children those of the owner: with a reference to it, a name that begins with its name if they have
// none, its namespace if they have none, and its labels beside their own. In a handler of the owner, c.Adopt is the
// same. Kopf: adopt.
func Adopt(owner client.Object, children any, opts ...AdoptOption) error {
	s := collect(opts)
	paths, err := parse(s.nested)
	if err != nil {
		return fmt.Errorf("adopting: %w", err)
	}
	reference, err := OwnerReference(owner, Scheme(s.scheme))
	if err != nil {
		return fmt.Errorf("adopting: %w", err)
	}
	labels, name, namespace := owner.GetLabels(), owner.GetName(), owner.GetNamespace()
	if name == "" {
		return fmt.Errorf("adopting: %w", errNoName)
	}
	return each(children, func(c child) error {
		if err := c.appendReference(reference); err != nil {
			return fmt.Errorf("adopting: %w", err)
		}
		if err := c.harmonize(name, s); err != nil {
			return err
		}
		if err := c.adjust(namespace, s); err != nil {
			return err
		}
		return c.labelAll(labels, s.forced, paths)
	})
}
