package facade

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// runner is one command line: the values of its flags, and what they lead to.
type runner struct {
	op *Operator

	kubeconfig    string
	namespaces    []string
	allNamespaces bool
	metrics       string
	verbose       bool
	debug         bool
	quiet         bool
	format        string
}

// commonFlags are those of all commands. Kopf has the same, but --kubeconfig.
func (r *runner) commonFlags(flags *pflag.FlagSet) {
	flags.StringVar(
		&r.kubeconfig, "kubeconfig", "",
		"the `file` that says which cluster; default: $KUBECONFIG, or the cluster around the process, or "+
			"~/.kube/config",
	)
	flags.BoolVarP(&r.verbose, "verbose", "v", false, "log more: what is decided, and why")
	flags.BoolVarP(&r.debug, "debug", "d", false, "log everything, the libraries below included")
	flags.BoolVarP(&r.quiet, "quiet", "q", false, "log errors only")
	flags.StringVar(
		&r.format, "log-format", formatFull,
		"the `format` of the log: plain (message and values), full (time and level as well), json (one object a line)",
	)
}

func (r *runner) runFlags(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&r.namespaces, "namespace", "n", nil, "serve this `namespace`; may be given several times")
	flags.BoolVarP(&r.allNamespaces, "all-namespaces", "A", false, "serve the whole cluster")
	flags.StringVar(
		&r.metrics, "metrics-bind-address", "0",
		"serve metrics for Prometheus at this `address`, such as :8080; 0 is off",
	)
}

const (
	formatFull  = "full"
	formatPlain = "plain"
	formatJSON  = "json"
)

// settle checks the flags against each other.
func (r *runner) settle(cmd *cobra.Command) error {
	r.format = strings.ToLower(r.format)
	switch {
	case r.allNamespaces && len(r.namespaces) > 0:
		return asUsage(cmd, errors.New("-n (--namespace) and -A (--all-namespaces) exclude each other"))
	case r.quiet && (r.verbose || r.debug):
		return asUsage(cmd, errors.New("-q (--quiet) excludes -v (--verbose) and -d (--debug)"))
	case r.format != formatFull && r.format != formatPlain && r.format != formatJSON:
		return asUsage(cmd, fmt.Errorf("unknown log format %q: it is plain, full or json", r.format))
	}
	names, err := namespaces(r.namespaces)
	if err != nil {
		return asUsage(cmd, fmt.Errorf("-n (--namespace): %w", err))
	}
	r.namespaces = names
	return nil
}

// scope gives the namespaces to be served, none for the whole cluster, and a hint if nobody has said so.
func (r *runner) scope() (names []string, hint string) {
	switch {
	case r.allNamespaces:
		return nil, ""
	case len(r.namespaces) > 0:
		return r.namespaces, ""
	case len(r.op.settings.namespaces) > 0:
		return r.op.settings.namespaces, ""
	default:
		return nil,
			"Neither -n nor -A is given: the whole cluster is served. Say -A to confirm that, or -n to choose " +
				"namespaces."
	}
}
