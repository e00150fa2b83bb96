package kopf

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/peering"
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

const (
	defaultTakeOverWait = 5 * time.Second
	shortestLifetime    = 3 * time.Second
	kopfPeering         = "default"
)

// resolve fills in the defaults and returns the invalid fields.
func (p *PeeringSettings) resolve(operator string) (problems []error) {
	wrong := func(field, format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s: %w", "Peering."+field, fmt.Errorf(format, args...)))
	}
	if p.Name != "" {
		if invalid := validation.IsDNS1123Subdomain(p.Name); len(invalid) > 0 {
			wrong("Name", "%q cannot be the name of an object: %s", p.Name, invalid[0])
		}
	}
	if p.Lifetime > 0 && (p.Lifetime < shortestLifetime || p.Lifetime%time.Second != 0) {
		wrong("Lifetime", "%s: it is in whole seconds, %s or more", p.Lifetime, shortestLifetime)
	}
	if p.Name == "" && p.KopfRules {
		p.Name = kopfPeering
	}
	p.Name = cmp.Or(p.Name, operator)
	return problems
}

// idle reports whether a field is set that has no effect, because the operator does not look for peers.
func (p PeeringSettings) idle() bool {
	p.KopfRules = false // those of AsKopf do not ask for anything
	return !p.Standalone && p.Name == "" && !p.Mandatory && p != PeeringSettings{}
}

// member returns the operator as a member of its peerings, without its identity.
func (p *PeeringSettings) member() peering.Member {
	m := peering.Member{
		Self: peering.Self{Identity: p.Identity, Priority: p.Priority, Elects: !p.KopfRules}, Name: p.Name,
		Lifetime: p.Lifetime, Mandatory: p.Mandatory, Stealth: p.Stealth,
		Skew: atLeastNothing(p.ClockSkew), Wait: atLeastNothing(p.TakeOverWait), KopfRules: p.KopfRules,
	}
	if p.KopfRules {
		m.Jitter = peering.KopfJitter
	}
	return m
}

// atLeastNothing returns a negative delay for Immediately, as the peering expects.
func atLeastNothing(d time.Duration) time.Duration {
	if d == Immediately {
		return -1
	}
	return d
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
