package defaults

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-runtime/kopf-runtime/peering"
)

// Peering is the section Peering of the settings, with the fields of kopf.PeeringSettings.
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

// DefaultTakeOverWait is the default of Peering.TakeOverWait.
const DefaultTakeOverWait = 5 * time.Second

const (
	// A record is renewed after a third of its lifetime, so a shorter lifetime would mean more than one write per
	// second.
	minLifetime     = 3 * time.Second
	kopfPeeringName = "default"
)

// ResolveDefaults sets the default name, and returns the invalid fields. The parameter operator is the name of the
// operator.
func (p *Peering) ResolveDefaults(operator string) (problems []error) {
	wrong := func(field, format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s: %w", "Peering."+field, fmt.Errorf(format, args...)))
	}
	if p.Name != "" {
		if invalid := validation.IsDNS1123Subdomain(p.Name); len(invalid) > 0 {
			wrong("Name", "%q cannot be the name of an object: %s", p.Name, invalid[0])
		}
	}
	// As in Kopf, records contain whole seconds.
	if p.Lifetime > 0 && (p.Lifetime < minLifetime || p.Lifetime%time.Second != 0) {
		wrong("Lifetime", "%s: it is in whole seconds, %s or more", p.Lifetime, minLifetime)
	}
	// With KopfRules, the default name is Kopf's, so that the operator shares the peering of Python operators.
	if p.Name == "" && p.KopfRules {
		p.Name = kopfPeeringName
	}
	p.Name = cmp.Or(p.Name, operator)
	return problems
}

// HasUnusedFields reports whether fields are set that have no effect because the operator does not look for peers.
func (p Peering) HasUnusedFields() bool {
	p.KopfRules = false // AsKopf sets it, which does not request peering
	return !p.Standalone && p.Name == "" && !p.Mandatory && p != Peering{}
}

// AsMember returns the operator as a member of its peerings. The caller adds a default identity if Identity is empty.
func (p *Peering) AsMember() peering.Member {
	m := peering.Member{
		Self: peering.Self{Identity: p.Identity, Priority: p.Priority, Elects: !p.KopfRules}, Name: p.Name,
		Lifetime: p.Lifetime, Mandatory: p.Mandatory, Stealth: p.Stealth,
		Skew: NegativeIfImmediate(p.ClockSkew), SilentPeerWait: NegativeIfImmediate(p.TakeOverWait),
		KopfRules: p.KopfRules,
	}
	if p.KopfRules {
		// Kopf renews its record 5 to 10 seconds before the end of the lifetime. Other members renew it after a third.
		m.Jitter = peering.KopfJitter
	}
	return m
}

// NegativeIfImmediate returns -1 for Immediately, as the engine and the peering expect: there, zero is the default.
func NegativeIfImmediate(d time.Duration) time.Duration {
	if d == Immediately {
		return -1
	}
	return d
}
