package reconcilers

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
)

// claims know which operators of one manager remember which kinds, and where. Two operators that share both would take
// each other's memory for their own, and only the process as a whole can see it.
type claims struct {
	mu       sync.Mutex
	all      []*claim
	acquired map[place][]occupant
}

// claim is what one operator remembers.
type claim struct {
	of               *claims
	manager          elected
	prefix, operator string
	places           []string
	selectors        []discovery.Selector
	namespaces       []string // that it is restricted to, if they are all known by name
}

// elected is the channel of a manager, by which it is known: it is its own, and holds nothing alive.
type elected <-chan struct{}

// place is where the memory of one operator's prefix on one resource is, whatever its version.
type place struct {
	prefix   string
	resource schema.GroupResource
}

type occupant struct {
	by   *claim
	kind schema.GroupVersionKind
}

// byManager finds the claims of a manager. The operators hold them, so that nothing is left of a manager that ends, or
// is dropped without ever being started.
var byManager = struct {
	mu     sync.Mutex
	claims map[elected]weak.Pointer[claims]
}{claims: map[elected]weak.Pointer[claims]{}}

// claimsOf are those of the manager. The lock is held.
func claimsOf(m elected) *claims {
	if known := byManager.claims[m].Value(); known != nil {
		return known
	}
	made := &claims{acquired: map[place][]occupant{}}
	byManager.claims[m] = weak.Make(made)
	runtime.AddCleanup(made, func(m elected) {
		byManager.mu.Lock()
		defer byManager.mu.Unlock()
		if byManager.claims[m].Value() == nil {
			delete(byManager.claims, m)
		}
	}, m)
	return made
}

// newClaim notes the name and all kinds of the operator, or nothing if another operator has one of them already. Two
// spellings of one kind are told as far as that can be without asking a cluster; acquire knows for certain, later.
func newClaim(m manager.Manager, o Options) (*claim, error) {
	places, err := o.Places()
	if err != nil {
		return nil, fmt.Errorf("asking the storages of operator %q for their places: %w", o.Name, err)
	}
	own := &claim{
		manager: m.Elected(), prefix: o.Prefix, operator: o.Name, places: places,
		selectors: o.selectors(),
	}
	if names, plain := o.Namespaces.Plain(); plain {
		own.namespaces = names
	}
	byManager.mu.Lock()
	defer byManager.mu.Unlock()
	own.of = claimsOf(own.manager)
	own.of.mu.Lock()
	defer own.of.mu.Unlock()
	for _, other := range own.of.all {
		if err := own.clash(other); err != nil {
			return nil, err
		}
		if other.operator == own.operator {
			return nil, fmt.Errorf("another operator of this manager has the name %q, and the health checks of that "+
				"name: give one of them another name, or register all handlers with one operator", o.Name)
		}
	}
	own.of.all = append(own.of.all, own)
	return own, nil
}

// clash tells whether the operator would use the memory of another one. In namespaces of their own, operators may share
// a prefix: acquire sees to kinds without namespaces.
func (c *claim) clash(other *claim) error {
	shared := other.sharing(c.prefix, c.places)
	if shared == "" || c.prefix == other.prefix && c.apart(other) {
		return nil
	}
	for _, selector := range c.selectors {
		if slices.ContainsFunc(other.selectors, selector.MayMean) {
			return fmt.Errorf(
				"operator %q cannot handle %s: %w", c.operator, selector, takenError(other.operator, shared),
			)
		}
	}
	return nil
}

// apart tells whether no namespace can be served by both operators. What patterns match is not known before they run.
func (c *claim) apart(other *claim) bool {
	return len(c.namespaces) > 0 && len(other.namespaces) > 0 &&
		!slices.ContainsFunc(c.namespaces, func(name string) bool { return slices.Contains(other.namespaces, name) })
}

// sharing is where two operators remember the same kind, if they do.
func (c *claim) sharing(prefix string, places []string) string {
	if c.prefix == prefix {
		return samePrefix(prefix)
	}
	for _, place := range places {
		if slices.Contains(c.places, place) {
			return fmt.Sprintf("its memory at the same place, %s; give one of them another storage", place)
		}
	}
	return ""
}

func samePrefix(prefix string) string {
	return fmt.Sprintf("the same annotation prefix %q; give one of them another name", prefix)
}

func takenError(operator, shared string) error {
	return fmt.Errorf("operator %q of this process does already, with %s", operator, shared)
}

// end is when the operator is over: nothing is left of its claim.
func (c *claim) end() {
	byManager.mu.Lock()
	defer byManager.mu.Unlock()
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.all = slices.DeleteFunc(c.of.all, func(other *claim) bool { return other == c })
	if len(c.of.all) == 0 {
		delete(byManager.claims, c.manager)
	}
}

// acquire reserves a resource until it is released: by then it is known, whatever it was called. One operator cannot
// have it twice either: its versions are the same objects.
func (c *claim) acquire(r discovery.Resource) (release func(), err error) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	at := place{c.prefix, r.GroupResource()}
	for _, held := range c.of.acquired[at] {
		switch {
		case held.by.operator == c.operator:
			return nil, fmt.Errorf("operator %q cannot handle %s: it handles the same objects as %s already",
				c.operator, r.GroupVersionKind, held.kind)
		case r.Namespaced && c.apart(held.by):
		default:
			return nil, fmt.Errorf(
				"operator %q cannot handle %s: %w", c.operator, r.GroupVersionKind,
				takenError(held.by.operator, samePrefix(c.prefix)),
			)
		}
	}
	c.of.acquired[at] = append(c.of.acquired[at], occupant{c, r.GroupVersionKind})
	return func() { c.of.release(at, c) }, nil
}

func (c *claims) release(at place, by *claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := slices.DeleteFunc(c.acquired[at], func(held occupant) bool { return held.by == by })
	if c.acquired[at] = left; len(left) == 0 {
		delete(c.acquired, at)
	}
}
