package commandline

import (
	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// devPriority is the priority of operators with --dev. Kopf has the same value.
const devPriority = 666

// RunFlags contains the values of flags. They take precedence over the operator's settings.
type RunFlags struct {
	// Namespaces are the patterns of the namespaces to serve; none means the whole cluster. They are only valid if
	// Scoped is true. Otherwise the operator's settings decide.
	Namespaces []string
	HasScope   bool
	Peering    PeeringFlags
	Election   ElectionFlags
	// Inspection configures the debug server.
	Inspection Inspection
	// Metrics configures the server of the metrics.
	Metrics serving.Metrics
	// HealthProbeBindAddress is the address of the health probes. Empty and "0" turn the server off.
	HealthProbeBindAddress string
	// Cluster selects the kubeconfig.
	Cluster serving.ClusterConfig
	// DeletionsOnly handles only objects that are being deleted, and serves no admission.
	DeletionsOnly bool
}

// Inspection configures the debug server, which shows the state of an operator and its objects.
type Inspection struct {
	// Address is the address, such as localhost:8082. Empty and "0" turn the server off.
	Address string
	// Console and Profiling add these parts to the explanations.
	Console, Profiling bool
	// Optional makes the operator run without the server if the address is not available.
	Optional bool
}

// IsOff reports whether the server is turned off.
func (i Inspection) IsOff() bool { return i.Address == "" || i.Address == "0" }

// UnservedPart returns the name of a part that is selected although the server is off.
func (i Inspection) UnservedPart() string {
	switch {
	case i.IsOff() && i.Console:
		return "Console"
	case i.IsOff() && i.Profiling:
		return "Profiling"
	}
	return ""
}

// PeeringFlags contains the values of the peering flags.
type PeeringFlags struct {
	// Name is the name of a mandatory peering object; empty if it is not given.
	Name string
	// Priority is the operator's priority; nil if it is not given.
	Priority *int
	// Standalone is true if the operator ignores its peers; nil if it is not given.
	Standalone *bool
}

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

// checkFlags validates the name of the peering object.
func (p *peeringFlags) checkFlags(cmd *cobra.Command) error {
	if p.name == "" {
		return nil
	}
	return checkPeering(cmd, p.name)
}

// setValues returns the values that are set in the command line or in the environment. As in Kopf, --dev takes
// precedence over a priority.
func (p *peeringFlags) setValues(cmd *cobra.Command) (given PeeringFlags) {
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
