package commandline

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/console"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/liveness"
)

// runner is one command line: the values of its flags, and what they lead to.
type runner struct {
	program Program

	kubeconfig    string
	namespaces    []string
	allNamespaces bool
	metrics       string
	health        string
	liveness      string
	endpoint      liveness.Address
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
		&r.format, "log-format", string(console.Full),
		"the `format` of the log: plain (message and values), full (time and level as well), json (one object a line)",
	)
}

// runFlags are those of the commands that run the operator.
func (r *runner) runFlags(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&r.namespaces, "namespace", "n", nil, "serve this `namespace`; may be given several times")
	flags.BoolVarP(&r.allNamespaces, "all-namespaces", "A", false, "serve the whole cluster")
	flags.Bool("standalone", false, "run alone, whatever other operators do: always so, as there is no peering yet")
	flags.StringVar(
		&r.metrics, "metrics-bind-address", "0",
		"serve metrics for Prometheus at this `address`, such as :8080; 0 is off",
	)
	flags.StringVar(
		&r.health, "health-probe-bind-address", "0",
		"serve /healthz and /readyz at this `address`, such as :8081: whether the operator is stuck, and whether it "+
			"is at work; 0 is off",
	)
	flags.StringVarP(
		&r.liveness, "liveness", "L", "",
		"serve the results of the probes at this `URL`, such as http://0.0.0.0:8080/healthz",
	)
}

// checkFlags checks the flags one by one and against each other, and brings them into their shortest form.
func (r *runner) checkFlags(cmd *cobra.Command) error {
	r.format = strings.ToLower(r.format)
	switch {
	case r.allNamespaces && len(r.namespaces) > 0:
		return asUsage(cmd, errors.New("-n (--namespace) and -A (--all-namespaces) exclude each other"))
	case r.quiet && (r.verbose || r.debug):
		return asUsage(cmd, errors.New("-q (--quiet) excludes -v (--verbose) and -d (--debug)"))
	case !console.Format(r.format).Valid():
		return asUsage(cmd, fmt.Errorf("unknown log format %q: it is plain, full or json", r.format))
	}
	names, err := UniqueNamespaces(r.namespaces)
	if err != nil {
		return asUsage(cmd, fmt.Errorf("-n (--namespace): %w", err))
	}
	r.namespaces = names
	if r.liveness == "" {
		return nil
	}
	if r.endpoint, err = liveness.Parse(r.liveness); err != nil {
		return asUsage(cmd, fmt.Errorf("-L (--liveness): %w", err))
	}
	return nil
}

// UniqueNamespaces gives the names once each: a namespace given twice would be watched, and handled, twice. It is an
// error if one cannot be the name of a namespace.
func UniqueNamespaces(names []string) ([]string, error) {
	for _, name := range names {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return nil, fmt.Errorf("%q is not the name of a namespace: %s", name, problems[0])
		}
	}
	unique := slices.Clone(names)
	slices.Sort(unique)
	return slices.Compact(unique), nil
}

// scope gives the namespaces to be served, none for the whole cluster, and a hint if nobody has said so.
func (r *runner) scope(ofProgram []string) (names []string, hint string) {
	switch {
	case r.allNamespaces:
		return nil, ""
	case len(r.namespaces) > 0:
		return r.namespaces, ""
	case len(ofProgram) > 0:
		return ofProgram, ""
	default:
		return nil,
			"Neither -n nor -A is given: the whole cluster is served. Say -A to confirm that, or -n to choose " +
				"namespaces."
	}
}

// logOptions say how the flags want the log.
func (r *runner) logOptions() console.Options {
	o := console.Options{Format: console.Format(r.format), Operator: r.program.Name}
	switch {
	case r.debug:
		o.Verbosity = console.Debug
	case r.verbose:
		o.Verbosity = console.Verbose
	case r.quiet:
		o.Verbosity = console.Quiet
	}
	return o
}
