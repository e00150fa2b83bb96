package hierarchies

import (
	"errors"
	"fmt"
)

var errNoName = errors.New("harmonizing names: the name is empty")

// HarmonizeNaming names the children that have neither a name nor a generateName. By default, it sets generateName to
// "<name>-", so that the API server generates the name; with [Strict], it sets the name itself. Kopf: harmonize_naming.
func HarmonizeNaming(children any, name string, opts ...NamingOption) error {
	if name == "" {
		return errNoName
	}
	s := collectOptions(opts)
	return eachObject(children, func(c child) error { return c.setName(name, s) })
}

// setName sets the name or generateName of one child, and removes the other one.
func (c child) setName(name string, s settings) error {
	held := c.metaObject()
	named := held.GetName() != "" || held.GetGenerateName() != ""
	if c.typed == nil {
		metadata, err := c.ensureMetadata()
		if err != nil {
			return fmt.Errorf("harmonizing names: %w", err)
		}
		// As in Kopf, a key that is present counts as a name, even if its value is null or empty.
		_, hasName := metadata["name"]
		_, hasGenerateName := metadata["generateName"]
		named = hasName || hasGenerateName
	}
	if named && !s.isForced {
		return nil
	}
	// Remove both fields first: with a name, the API server ignores generateName.
	held.SetName("")
	held.SetGenerateName("")
	if s.isStrict {
		held.SetName(name)
	} else {
		held.SetGenerateName(name + "-")
	}
	return nil
}

// AdjustNamespace sets the namespace of children that do not have one; with [Forced], of all children. An empty
// namespace is for cluster-scoped children. Kopf: adjust_namespace.
func AdjustNamespace(children any, namespace string, opts ...NamespaceOption) error {
	s := collectOptions(opts)
	return eachObject(children, func(c child) error { return c.setNamespace(namespace, s) })
}

// setNamespace sets the namespace of one child.
func (c child) setNamespace(namespace string, s settings) error {
	if c.typed != nil {
		if c.typed.GetNamespace() == "" || s.isForced {
			c.typed.SetNamespace(namespace)
		}
		return nil
	}
	metadata, err := c.ensureMetadata()
	switch {
	case err != nil:
		return fmt.Errorf("adjusting namespaces: %w", err)
	// As in Kopf, an empty string in a mapping is a namespace that is set, and null is not.
	case metadata["namespace"] != nil && !s.isForced:
	case namespace == "":
		metadata["namespace"] = nil
	default:
		metadata["namespace"] = namespace
	}
	return nil
}
