package commandline

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// needsFlags are those flags of the operator that change its needs in a cluster, for commands that do not run it.
type needsFlags struct {
	peering       peeringFlags // only --peering
	election      electionFlags
	metricsSecure bool // --metrics-secure
}

// addFlags adds the flags.
func (n *needsFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&n.peering.name, "peering", "P", "", "the `name` of the peering object that the operator requires")
	n.election.addFlags(cmd)
	addMetricsSecure(flags, &n.metricsSecure)
}

// checkFlags validates the flags as the operator does.
func (n *needsFlags) checkFlags(cmd *cobra.Command) error {
	return cmp.Or(n.peering.checkFlags(cmd), n.election.checkFlags(cmd, &n.peering))
}

// values returns the flags with which the operator will run.
func (n *needsFlags) values(of scope) serving.RunFlags {
	return serving.RunFlags{
		Namespaces: of.namespaces, HasScope: of.isGiven(), Peering: serving.PeeringFlags{Name: n.peering.name},
		Election: n.election.ElectionFlags, Metrics: serving.Metrics{Secure: n.metricsSecure},
	}
}
