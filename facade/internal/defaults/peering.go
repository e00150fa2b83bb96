package defaults

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-runtime/kopf-runtime/peering"
)

// Peering is the section of the settings.
type Peering struct {
	Name                                  string
	Stealth                               bool
	Priority                              int
	Lifetime                              time.Duration
	Mandatory, Standalone, Clusterwide    bool
	Identity                              string
	KopfRules                             bool
	ClockSkew, TakeOverWait, PauseTimeout time.Duration
}

// DefaultTakeOverWait is the default of TakeOverWait.
const DefaultTakeOverWait = 5 * time.Second

const (
	shortestLifetime = 3 * time.Second
	kopfPeering      = "default"
)

// Resolve fills in the defaults and returns the invalid fields.
func (p *Peering) Resolve(operator string) (problems []error) {
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

// Idle reports whether a field is set that has no effect, because the operator does not look for peers.
func (p Peering) Idle() bool {
	p.KopfRules = false // those of AsKopf do not ask for anything
	return !p.Standalone && p.Name == "" && !p.Mandatory && p != Peering{}
}

// Member returns the operator as a member of its peerings, without its identity.
func (p *Peering) Member() peering.Member {
	m := peering.Member{
		Self: peering.Self{Identity: p.Identity, Priority: p.Priority, Elects: !p.KopfRules}, Name: p.Name,
		Lifetime: p.Lifetime, Mandatory: p.Mandatory, Stealth: p.Stealth,
		Skew: OrNegative(p.ClockSkew), Wait: OrNegative(p.TakeOverWait), KopfRules: p.KopfRules,
	}
	if p.KopfRules {
		m.Jitter = peering.KopfJitter
	}
	return m
}

// OrNegative returns a negative delay for Immediately, as the engine and the peering expect.
func OrNegative(d time.Duration) time.Duration {
	if d == Immediately {
		return -1
	}
	return d
}
