package commandline

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/internal/inspection"
)

// runner is the command that runs the operator, with the values of its flags.
type runner struct {
	base        baseCommand
	given       serving.RunFlags
	peering     peeringFlags
	election    electionFlags
	livenessURL string   // --liveness as given
	modules     []string // a flag of Kopf that is rejected
}

// addFlags adds all flags to a command. The root command and "run" share one runner, so the values are the same.
func (r *runner) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	r.peering.addFlags(cmd)
	r.election.addFlags(cmd)
	addMetricsFlags(flags, &r.given.Metrics)
	flags.StringVar(
		&r.given.HealthProbeBindAddress, "health-probe-bind-address", "0",
		"serve /healthz and /readyz at this `address`, such as :8081: whether the operator is stuck, and whether it "+
			"is at work; 0 is off",
	)
	flags.StringVar(
		&r.given.Inspection.Address, "debug-bind-address", inspection.DefaultAddress,
		"serve explanations at this `address`, for the command explain; 0 is off",
	)
	flags.BoolVar(
		&r.given.Inspection.Console, "console", false,
		"show the running operator on a page, /console at the --debug-bind-address",
	)
	flags.BoolVar(
		&r.given.Inspection.Profiling, "profiling", false, "serve profiles, /debug/pprof at the --debug-bind-address",
	)
	flags.StringVarP(
		&r.livenessURL, "liveness", "L", "",
		"serve the results of the probes at this `URL`, such as http://0.0.0.0:8080/healthz",
	)
	// The hidden flag exists only to explain why it is not supported.
	flags.StringArrayVarP(&r.modules, "module", "m", nil, "a Python `module` for Kopf")
	flags.Lookup("module").Hidden = true
	r.base.addFlags(cmd, "serve this `namespace`", "serve the whole cluster")
	// Only now does the command have all flags.
	r.base.finishFlags(cmd)
}

// checkFlags validates the flags that only this command has.
func (r *runner) checkFlags(cmd *cobra.Command) error {
	// Kopf's users expect to name Python modules; here, handlers are compiled in.
	if len(r.modules) > 0 {
		return asUsageError(cmd, errors.New(
			"-m (--module): the handlers are in this program already: there are no modules to be loaded",
		))
	}
	if part := r.given.Inspection.UnservedPart(); part != "" {
		return asUsageError(cmd, fmt.Errorf(
			"--%s: it is served at the --debug-bind-address, which is off: give it an address", strings.ToLower(part),
		))
	}
	// With the default address, a second operator on the same machine must still start. An explicit choice must not be
	// ignored silently.
	r.given.Inspection.Optional = !r.given.Inspection.Console && !r.given.Inspection.Profiling &&
		!cmd.Flags().Changed("debug-bind-address")
	err := cmp.Or(
		checkPeering(cmd, r.peering.name), r.election.checkFlags(cmd, &r.peering), checkMetrics(cmd, r.given.Metrics),
	)
	if err != nil || r.livenessURL == "" {
		return err
	}
	// The URL is parsed here, so that an invalid one is a usage error.
	if r.given.Liveness, err = serving.ParseLivenessAddress(r.livenessURL); err != nil {
		return asUsageError(cmd, fmt.Errorf("-L (--liveness): %w", err))
	}
	return nil
}

// rejectFiles rejects the file names that Kopf requires, and explains why they are not needed here.
func rejectFiles(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return asUsageError(cmd, fmt.Errorf(
			"unknown argument %q: the handlers are in this program already, so %q takes no files", args[0], "run",
		))
	}
	return nil
}

// runOperator serves until its context ends. Everything that needs no cluster is checked before the connection, so that
// mistakes are reported immediately.
func (r *runner) runOperator(cmd *cobra.Command, _ []string) error {
	_, log, err := r.base.prepareWithLog(cmd, r.checkFlags)
	if err != nil {
		return err
	}
	r.given.Namespaces, r.given.HasScope = r.base.scope.namespaces, r.base.scope.isGiven()
	r.given.Cluster = r.base.cluster
	r.given.Peering, r.given.Election = r.peering.setValues(cmd), r.election.values(&r.peering)
	return r.base.program.Run(cmd.Context(), serving.RunOptions{RunFlags: r.given, ManagerLog: log})
}
