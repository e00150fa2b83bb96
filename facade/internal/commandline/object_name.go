package commandline

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// namedObject is the object that a command is about, with the arguments KIND and [NAMESPACE/]NAME.
type namedObject struct{ kind, namespace, name string }

// addFlags adds the flag of the namespace.
func (o *namedObject) addFlags(flags *pflag.FlagSet) {
	flags.StringVarP(&o.namespace, "namespace", "n", "", "the `namespace` of the object, if not before its name")
}

// checkObjectArguments checks the arguments KIND and [NAMESPACE/]NAME.
func checkObjectArguments(cmd *cobra.Command, args []string) error {
	if len(args) != 2 {
		return asUsageError(cmd, fmt.Errorf("%d arguments are given: it needs a kind and a name, such as %q",
			len(args), "widget default/my-widget"))
	}
	// A slash with an empty part before or after it is more likely an error than a name.
	if namespace, name, both := strings.Cut(args[1], "/"); both && (namespace == "" || name == "") {
		return asUsageError(cmd, fmt.Errorf("%q is neither NAME nor NAMESPACE/NAME", args[1]))
	}
	return nil
}

// readName returns a function that reads the checked arguments. The namespace can be given twice, in the flag and in
// the argument, but then both must agree.
func (o *namedObject) readName(args []string) func(cmd *cobra.Command) error {
	return func(cmd *cobra.Command) error {
		o.kind, o.name = args[0], args[1]
		namespace, name, both := strings.Cut(o.name, "/")
		switch {
		case both && o.namespace != "" && o.namespace != namespace:
			return asUsageError(cmd, fmt.Errorf("there are two namespaces: %s and %s", o.namespace, namespace))
		case both:
			o.namespace, o.name = namespace, name
		}
		return nil
	}
}
