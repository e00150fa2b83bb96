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
	// Inspection is the debug server.
	Inspection Inspection
	// Metrics and Health are the addresses of these servers. Empty and "0" are off.
	Metrics, Health string
	// Cluster is where the cluster is described.
	Cluster serving.Cluster
}

// Inspection configures the debug server, which shows what an operator knows about itself and its objects.
type Inspection struct {
	// Address is such as localhost:8082; empty and "0" are off.
	Address string
	// Console and Profiling add these parts to the explanations.
	Console, Profiling bool
	// Optional makes the operator run without the server if the address is not available.
	Optional bool
}

// IsOff is true without an address.
func (i Inspection) IsOff() bool { return i.Address == "" || i.Address == "0" }

// Unserved returns the name of a part that is selected although the server is off.
func (i Inspection) Unserved() string {
	switch {
	case i.IsOff() && i.Console:
		return "Console"
	case i.IsOff() && i.Profiling:
		return "Profiling"
	}
	return ""
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
