package commandline

import (
	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// devPriority is that of the flag --dev. Kopf has the same.
const devPriority = 666

// Given is what flags say of an operator: it wins over the operator's settings.
type Given struct {
	// Namespaces are patterns of those that the operator is restricted to; none means the whole cluster. They count if
	// it is Scoped: else no flag says otherwise than the operator.
	Namespaces []string
	Scoped     bool
	Peering    Peering
	// Inspection is where the operator tells what it knows.
	Inspection Inspection
	// Cluster is where the cluster is described.
	Cluster serving.Cluster
}

// Inspection is where an operator tells what it knows about itself and its objects.
type Inspection struct {
	// Address is such as localhost:8082; empty and "0" are nowhere.
	Address string
	// Console is true if there is to be the page that shows the running operator.
	Console bool
	// Optional is true if nobody has asked for it: an operator goes on without if the address cannot be had.
	Optional bool
}

// Peering is what flags say of the peers.
type Peering struct {
	// Name is that of a peering object without which the operator must not run; empty is not given.
	Name string
	// Priority is the operator's; nil is not given.
	Priority *int
	// Standalone is whether the operator has no peers at all; nil is not given.
	Standalone *bool
}

// peeringFlags are the flags of peering of an operator. Kopf has the same.
type peeringFlags struct {
	name       string
	priority   number
	dev        bool
	standalone bool
}

func (p *peeringFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(
		&p.name, "peering", "P", "",
		"the `name` of the peering object, without which the operator does not begin: a ClusterKopfPeering, or, with "+
			"-n, a KopfPeering in each namespace",
	)
	flags.VarP(
		&p.priority, "priority", "p", "the `number` that decides which one of several operators acts: the highest",
	)
	flags.BoolVar(&p.dev, "dev", false, "run with the priority 666, as developers do: all others pause")
	flags.BoolVar(&p.standalone, "standalone", false, "run alone, whatever other operators do")
}

func (p *peeringFlags) check(cmd *cobra.Command) error {
	if p.name == "" {
		return nil
	}
	return checkPeering(cmd, p.name)
}

// given is what the command line, or the environment, has of it.
func (p *peeringFlags) given(cmd *cobra.Command) (given Peering) {
	given.Name = p.name
	switch {
	case p.dev:
		given.Priority = ptr.To(devPriority)
	case cmd.Flags().Changed("priority"):
		given.Priority = ptr.To(int(p.priority))
	}
	if cmd.Flags().Changed("standalone") {
		given.Standalone = ptr.To(p.standalone)
	}
	return given
}
