package serving

// RunFlags contains the values of flags. They take precedence over the operator's settings.
type RunFlags struct {
	// Namespaces are the patterns of the namespaces to serve; none means the whole cluster. They are only valid if
	// HasScope is true. Otherwise the operator's settings decide.
	Namespaces []string
	HasScope   bool
	Peering    PeeringFlags
	Election   ElectionFlags
	// Inspection configures the debug server.
	Inspection Inspection
	// Metrics configures the server of the metrics.
	Metrics Metrics
	// HealthProbeBindAddress is the address of the health probes. Empty and "0" turn the server off.
	HealthProbeBindAddress string
	// Liveness is the address of the results of the probes; nil serves none.
	Liveness *LivenessAddress
	// Cluster selects the kubeconfig.
	Cluster ClusterConfig
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
func (i Inspection) IsOff() bool { return i.Address == "" || i.Address == noAddress }

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

// The values of --leader-elect.
const (
	ElectAuto   = "auto"
	ElectAlways = "true"
	ElectNever  = "false"
)

// ElectionFlags contains the values of the flags of the leader election.
type ElectionFlags struct {
	// Mode is ElectAuto, ElectAlways or ElectNever. Empty is ElectNever.
	Mode string
	// ID is the name of the Lease; empty for the default.
	ID string
	// Shards is the number of ranges of objects that the replicas share; zero leaves it to the settings.
	Shards int
}
