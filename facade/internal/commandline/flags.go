package commandline

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

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
	log           logFlags

	readFlags       []string // those that the environment may have
	fromEnvironment []string // those that it has, with their variables
}

// commonFlags are those of all commands. Kopf has the same, but --kubeconfig.
func (r *runner) commonFlags(flags *pflag.FlagSet) {
	flags.StringVar(
		&r.kubeconfig, "kubeconfig", "",
		"the `file` that says which cluster; default: $KUBECONFIG, or the cluster around the process, or "+
			"~/.kube/config",
	)
	r.log.add(flags)
	r.readable(flags)
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
	r.readable(flags)
}

// checkFlags checks the flags one by one and against each other, and brings them into their shortest form.
func (r *runner) checkFlags(cmd *cobra.Command) error {
	if r.allNamespaces && len(r.namespaces) > 0 {
		return asUsage(cmd, errors.New("-n (--namespace) and -A (--all-namespaces) exclude each other"))
	}
	if err := r.log.check(cmd); err != nil {
		return err
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

// scope gives the namespaces to be served, none for the whole cluster, and tells whether somebody has said so.
func (r *runner) scope(ofProgram []string) (names []string, said bool) {
	switch {
	case r.allNamespaces:
		return nil, true
	case len(r.namespaces) > 0:
		return r.namespaces, true
	default:
		return ofProgram, len(ofProgram) > 0
	}
}
