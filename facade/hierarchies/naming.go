package hierarchies

import (
	"errors"
	"fmt"
)

var errNoName = errors.New("harmonizing names: the name is empty")

// HarmonizeNaming gives names to the children that have none, nor the beginning of one for the API server to complete:
// by default such a beginning, "<name>-", with [Strict] the name itself. Kopf: harmonize_naming.
func HarmonizeNaming(children any, name string, opts ...NamingOption) error {
	if name == "" {
		return errNoName
	}
	s := collect(opts)
	return eachObject(children, func(c child) error { return c.setName(name, s) })
}

func (c child) setName(name string, s settings) error {
	if c.typed != nil {
		if named := c.typed.GetName() != "" || c.typed.GetGenerateName() != ""; named && !s.forced {
			return nil
		}
		c.typed.SetName("")
		c.typed.SetGenerateName("")
		if s.strict {
			c.typed.SetName(name)
		} else {
			c.typed.SetGenerateName(name + "-")
		}
		return nil
	}
	metadata, err := c.metadata()
	if err != nil {
		return fmt.Errorf("harmonizing names: %w", err)
	}
	_, named := metadata["name"]
	_, generated := metadata["generateName"]
	if (named || generated) && !s.forced {
		return nil
	}
	delete(metadata, "name")
	delete(metadata, "generateName")
	if s.strict {
		metadata["name"] = name
	} else {
		metadata["generateName"] = name + "-"
	}
	return nil
}

// AdjustNamespace puts the children into the namespace that have none; with [Forced], all of them. An empty one is for
// children of the whole cluster. Kopf: adjust_namespace.
func AdjustNamespace(children any, namespace string, opts ...NamespaceOption) error {
	s := collect(opts)
	return eachObject(children, func(c child) error { return c.setNamespace(namespace, s) })
}

func (c child) setNamespace(namespace string, s settings) error {
	if c.typed != nil {
		if c.typed.GetNamespace() == "" || s.forced {
			c.typed.SetNamespace(namespace)
		}
		return nil
	}
	metadata, err := c.metadata()
	switch {
	case err != nil:
		return fmt.Errorf("adjusting namespaces: %w", err)
	case metadata["namespace"] != nil && !s.forced:
	case namespace == "":
		metadata["namespace"] = nil
	default:
		metadata["namespace"] = namespace
	}
	return nil
}
