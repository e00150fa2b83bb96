package kopf

import (
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
)

// PeeringSettings configure operators that share objects, see docs/peering.md. In a manager, peering needs a Name,
// Mandatory or [Operator.PeeringLock]. Kopf: settings.peering.
type PeeringSettings struct {
	// Name is the name of the peering object, which the operator does not create. Default: the operator's name;
	// "default" with KopfRules. Kopf: name.
	Name string
	// Stealth omits log lines about keep-alives. Kopf: stealth.
	Stealth bool
	// Priority decides who acts: operators of lower priorities pause. Kopf: priority.
	Priority int
	// Lifetime is how long a keep-alive lasts: whole seconds, at least 3. Default: 60 seconds. Kopf: lifetime.
	Lifetime time.Duration
	// Mandatory makes the operator wait for a peering object. Kopf: mandatory.
	Mandatory bool
	// Standalone disables peering. Kopf: standalone.
	Standalone bool
	// Clusterwide uses a ClusterKopfPeering even with Namespaces. Kopf: clusterwide.
	Clusterwide bool
	// Identity names the process among its peers. Default: $POD_ID, or user@host/time/xyz. Kopf: identity.
	Identity string
	// KopfRules follows Kopf where the rules differ, such as for equal priorities. True with [AsKopf].
	KopfRules bool
	// ClockSkew is how far clocks of operators may differ. Default: 2 minutes. Accepts [Immediately].
	ClockSkew time.Duration
	// TakeOverWait is how long the operator waits before it takes over from Kopf's operators. Default: 5 seconds.
	// Accepts [Immediately].
	TakeOverWait time.Duration
	// PauseTimeout is how long handlers may continue in a pause, before their contexts end with [ErrPaused]. Default:
	// 30 seconds. Accepts [Immediately].
	PauseTimeout time.Duration
}

// take applies the flags. A peering that is named by a flag overrides Standalone of the program.
func (p *PeeringSettings) take(given commandline.Peering) {
	if given.Name != "" {
		p.Name, p.Mandatory, p.Standalone = given.Name, true, false
	}
	if given.Priority != nil {
		p.Priority = *given.Priority
	}
	if given.Standalone != nil {
		p.Standalone = *given.Standalone
	}
}
