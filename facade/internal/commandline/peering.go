package commandline

import (
	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// devPriority is the priority of operators with --dev. Kopf has the same value.
const devPriority = 666

// peeringFlags are the peering flags of an operator. Kopf has the same flags.
type peeringFlags struct {
	name            string
	priority        number
	usesDevPriority bool
	standalone      bool
}

// addFlags adds the flags of peering.
func (p *peeringFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(
		&p.name, "peering", "P", "",
		"the `name` of the peering object, without which the operator does not begin: a ClusterKopfPeering, or, with "+
			"-n, a KopfPeering in each namespace",
	)
	flags.VarP(
		&p.priority, "priority", "p", "the `number` that decides which one of several operators acts: the highest",
	)
	flags.BoolVar(&p.usesDevPriority, "dev", false, "run with the priority 666, as developers do: all others pause")
	flags.BoolVar(&p.standalone, "standalone", false, "run alone, whatever other operators do")
}

// setValues returns the values that are set in the command line or in the environment. As in Kopf, --dev takes
// precedence over a priority.
func (p *peeringFlags) setValues(cmd *cobra.Command) (given serving.PeeringFlags) {
	given.Name = p.name
	switch {
	case p.usesDevPriority:
		given.Priority = ptr.To(devPriority)
	// A variable counts as changed as well, because it sets the flag.
	case cmd.Flags().Changed("priority"):
		given.Priority = ptr.To(int(p.priority))
	}
	if cmd.Flags().Changed("standalone") {
		given.Standalone = ptr.To(p.standalone)
	}
	return given
}
