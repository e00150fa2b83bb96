package commandline

import (
	"github.com/spf13/cobra"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// runOperator serves until its context ends. Everything that needs no cluster is checked before the connection, so that
// mistakes are reported immediately.
func (r *runner) runOperator(cmd *cobra.Command, _ []string) error {
	if err := r.base.readAndCheck(cmd, func() error { return r.checkFlags(cmd) }); err != nil {
		return err
	}
	operator := r.base.program.Operator
	// Errors of registrations are reported before the connection.
	settings, err := operator.Settings()
	if err != nil {
		return err
	}
	log, err := r.base.newLogger(cmd, settings.LogHandler)
	if err != nil {
		return err
	}
	// The flags are passed to the operator before its startup, whose handlers may read them.
	namespaces, said := r.base.scope.chooseNamespaces(settings.Namespaces)
	given := RunFlags{
		Namespaces: namespaces, HasScope: r.base.scope.isGiven(), Peering: r.peering.setValues(cmd),
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
		if !said && len(settings.Namespaces) == 0 {
			warnAboutScope(log)
		}
		return serving.Run(cmd.Context(), settings, serving.Options{
			Name: r.base.program.Name, Log: log, Cluster: r.base.cluster, Metrics: r.metrics.Metrics,
			HealthProbeBindAddress: r.healthProbeBindAddress,
			Liveness:               r.livenessAddress, SetUp: operator.SetupWithManager,
		})
	})
}
