package kopf

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/peering"
)

// PeeringSettings are those of operators that share objects, of which one acts and the others pause: see
// docs/peering.md. Under [Main], the operator looks for peers by default; in a manager that the project makes, it is
// alone unless it has a Name, or is Mandatory, or the manager has its [Operator.PeeringLock]. Kopf: settings.peering.
type PeeringSettings struct {
	// Name is that of the peering object: a ClusterKopfPeering, or, where the operator is restricted to namespaces, a
	// KopfPeering in each of them. The operator never makes one; where there is none, it acts without regard to others,
	// unless peering is Mandatory. Default: the operator's name; with KopfRules, "default". Kopf: name.
	Name string
	// Stealth does not log that the operator's record is kept alive. Kopf: stealth.
	Stealth bool
	// Priority is the operator's: those of lower priorities pause. Default: 0. Kopf: priority.
	Priority int
	// Lifetime is how long the operator counts as alive after each keep-alive: whole seconds, 3 or more. An operator
	// that is lost is followed by another one after this time. Default: 60 seconds. Kopf: lifetime.
	Lifetime time.Duration
	// Mandatory has the operator wait until there is a peering object where it can write. Kopf: mandatory.
	Mandatory bool
	// Standalone ignores all other operators, and is not seen by them, whatever else is set. Kopf: standalone.
	Standalone bool
	// Clusterwide takes the ClusterKopfPeering, although the operator is restricted to namespaces. Without namespaces,
	// it is so anyway. Kopf: clusterwide.
	Clusterwide bool
	// Identity names the operator among its peers, and is another one for each process. Default: $POD_ID, with the
	// operator's name behind it unless [Main] runs the process; without it, user@host, the time, and three characters
	// by chance. Kopf: the argument identity of kopf.operator.
	Identity string
	// KopfRules follows Kopf where the rules here are other ones: operators of one priority pause, all of them, instead
	// of electing the smallest identity; a peer in the KopfPeering of one namespace pauses the operator in all of them,
	// instead of in this one; a record without a time, or of an object that was removed, never ends; and the record is
	// renewed 5 to 10 seconds before its end, instead of three times as often as it has to be. [AsKopf] sets it.
	KopfRules bool
	// ClockSkew is how far the clocks of operators may differ. Of an operator of this framework, only a record that has
	// ended for longer is taken for dead at sight; otherwise, one that has not changed for its lifetime. [Immediately]
	// is for clocks that do not differ. Default: 2 minutes.
	ClockSkew time.Duration
	// TakeOverWait is how long the operator waits, with its record in place, before it acts instead of operators of
	// lower priority that cannot say when they are at rest, as those of Kopf. [Immediately] does not wait. Default: 5
	// seconds.
	TakeOverWait time.Duration
	// PauseTimeout is how long running handlers may go on when the operator pauses, before their contexts end with
	// [ErrPaused]. The operator that takes over waits for them. Those of an operator that cannot renew its record in
	// time end at once. [Immediately] is no time at all. Default: 30 seconds.
	PauseTimeout time.Duration
}

const (
	defaultTakeOverWait = 5 * time.Second
	shortestLifetime    = 3 * time.Second
	kopfPeering         = "default"
)

// resolve fills in the defaults, and tells what is wrong.
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

// idle tells whether something is set, but no peering.
func (p PeeringSettings) idle() bool {
	p.KopfRules = false // those of AsKopf do not ask for anything
	return !p.Standalone && p.Name == "" && !p.Mandatory && p != PeeringSettings{}
}

// member is the operator as a member of its peerings, without its identity.
func (p *PeeringSettings) member() peering.Member {
	m := peering.Member{
		Self: peering.Self{Identity: p.Identity, Priority: p.Priority, Elects: !p.KopfRules}, Name: p.Name,
		Lifetime: p.Lifetime, Runtime: peeringRuntime, Mandatory: p.Mandatory, Stealth: p.Stealth,
		Skew: atLeastNothing(p.ClockSkew), Wait: atLeastNothing(p.TakeOverWait), KopfRules: p.KopfRules,
	}
	if p.KopfRules {
		m.Jitter = peering.KopfJitter
	}
	return m
}

// peeringRuntime is what records say to be of.
const peeringRuntime = "kopf-runtime"

// atLeastNothing is a delay where a negative one is none.
func atLeastNothing(d time.Duration) time.Duration {
	if d == Immediately {
		return -1
	}
	return d
}

// take takes over what flags say. Whoever names a peering object there wants it, so it takes back what the program says
// of running alone.
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
