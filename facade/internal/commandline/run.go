package commandline

import (
	"github.com/spf13/cobra"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// run serves until its context ends. Everything that needs no cluster is checked before the connection, so that
// mistakes are reported immediately.
func (r *runner) run(cmd *cobra.Command, _ []string) error {
	if err := r.base.check(cmd, func() error { return r.check(cmd) }); err != nil {
		return err
	}
	operator := r.base.program.Operator
	// Errors of registrations are reported before the connection.
	settings, err := operator.Settings()
	if err != nil {
		return err
	}
	log, err := r.base.logger(cmd, settings.LogHandler)
	if err != nil {
		return err
	}
	// The flags are passed to the operator before its startup, whose handlers may read them.
	namespaces, said := r.base.scope.choose(settings.Namespaces)
	given := Given{
		Namespaces: namespaces, Scoped: r.base.scope.given(), Peering: r.peering.given(cmd),
		Inspection: r.inspection, Metrics: r.metrics, Health: r.health, Cluster: r.base.cluster,
	}
	return operator.Around(cmd.Context(), given, func() error {
		// The startup handlers may have changed any of the settings.
		settings, err := operator.Settings()
		if err != nil {
			return err
		}
		// The warning follows the startup, which can select namespaces as well.
		if !said && len(settings.Namespaces) == 0 {
			hintAtScope(log)
		}
		return serving.Run(cmd.Context(), settings, serving.Options{
			Name: r.base.program.Name, Log: log, Cluster: r.base.cluster, Metrics: r.metrics, Health: r.health,
			Liveness: r.endpoint, SetUp: operator.SetupWithManager,
		})
	})
}
