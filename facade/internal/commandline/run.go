package commandline

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/inspection"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// runner is the command that runs the operator, with the values of its flags.
type runner struct {
	base                   baseCommand
	peering                peeringFlags
	election               ElectionFlags
	metrics                metricsFlags
	healthProbeBindAddress string // --health-probe-bind-address; "0" is off
	inspection             Inspection
	livenessURL            string                   // --liveness as given
	livenessAddress        *serving.LivenessAddress // the parsed liveness URL; nil if it is not given
	modules                []string                 // a flag of Kopf that is rejected
}

// addFlags adds all flags to a command. The root command and "run" share one runner, so the values are the same.
func (r *runner) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	r.peering.addFlags(cmd)
	r.election.addFlags(cmd)
	r.metrics.addFlags(flags)
	flags.StringVar(
		&r.healthProbeBindAddress, "health-probe-bind-address", "0",
		"serve /healthz and /readyz at this `address`, such as :8081: whether the operator is stuck, and whether it "+
			"is at work; 0 is off",
	)
	flags.StringVar(
		&r.inspection.Address, "debug-bind-address", inspection.DefaultAddress,
		"serve explanations at this `address`, for the command explain; 0 is off",
	)
	flags.BoolVar(
		&r.inspection.Console, "console", false,
		"show the running operator on a page, /console at the --debug-bind-address",
	)
	flags.BoolVar(
		&r.inspection.Profiling, "profiling", false, "serve profiles, /debug/pprof at the --debug-bind-address",
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
	if part := r.inspection.UnservedPart(); part != "" {
		return asUsageError(cmd, fmt.Errorf(
			"--%s: it is served at the --debug-bind-address, which is off: give it an address", strings.ToLower(part),
		))
	}
	// With the default address, a second operator on the same machine must still start. An explicit choice must not be
	// ignored silently.
	r.inspection.Optional = !r.inspection.Console && !r.inspection.Profiling &&
		!cmd.Flags().Changed("debug-bind-address")
	err := cmp.Or(r.peering.checkFlags(cmd), r.election.checkFlags(cmd, &r.peering), r.metrics.checkFlags(cmd))
	if err != nil || r.livenessURL == "" {
		return err
	}
	// The URL is parsed here, so that an invalid one is a usage error.
	endpoint, err := serving.ParseLivenessAddress(r.livenessURL)
	if err != nil {
		return asUsageError(cmd, fmt.Errorf("-L (--liveness): %w", err))
	}
	r.livenessAddress = &endpoint
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
	operator := r.base.program.Operator
	// The flags are passed to the operator before its startup, whose handlers may read them.
	given := RunFlags{
		Namespaces: r.base.scope.namespaces, HasScope: r.base.scope.isGiven(), Peering: r.peering.setValues(cmd),
		Election: r.election.values(&r.peering), Inspection: r.inspection, Metrics: r.metrics.Metrics,
		HealthProbeBindAddress: r.healthProbeBindAddress, Cluster: r.base.cluster,
	}
	return operator.Around(cmd.Context(), given, func() error {
		// The startup handlers may have changed any of the settings.
		settings, err := operator.Settings()
		if err != nil {
			return err
		}
		// The warning follows the startup, which can select namespaces as well.
		if !given.HasScope && len(settings.Namespaces) == 0 {
			warnAboutScope(log)
		}
		return serving.Run(cmd.Context(), settings, serving.Options{
			Name: r.base.program.Name, Log: log, Cluster: r.base.cluster, Metrics: r.metrics.Metrics,
			HealthProbeBindAddress: r.healthProbeBindAddress,
			Liveness:               r.livenessAddress, SetUp: operator.SetupWithManager,
		})
	})
}
