package reconcilers

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
)

// claimRegistry are the claims of all operators of one manager. Two operators with the same storage on the same kind
// would take each other's records for their own. Neither of them can detect that alone, so this state is shared in the
// process.
type claimRegistry struct {
	mu        sync.Mutex
	claims    []*claim                // in the order of registration
	claimants map[claimKey][]claimant // resources that are being served now
}

// claim is the part of the cluster in which one operator stores its memory.
type claim struct {
	registry         *claimRegistry
	manager          elected
	prefix, operator string
	storagePointers  []string
	selectors        []discovery.Selector
	namespaces       []string // namespaces of the operator; empty if it serves all, or if patterns are resolved later
}

// elected is the Elected channel of a manager. It serves as the manager's identity: each manager has its own, and a map
// key of this type does not keep the manager alive.
type elected <-chan struct{}

// claimKey is one resource under one annotation prefix. All versions of a resource share it.
type claimKey struct {
	prefix   string
	resource schema.GroupResource
}

// claimant is the operator that serves a place, and the kind under which it does.
type claimant struct {
	claim *claim
	kind  schema.GroupVersionKind
}

// claimsByManager finds the claims of a manager. Its pointers are weak, only the operators hold their claims. So it
// keeps no memory of a manager that has ended, or was dropped without a start, as in tests.
var claimsByManager = struct {
	mu     sync.Mutex
	claims map[elected]weak.Pointer[claimRegistry]
}{claims: map[elected]weak.Pointer[claimRegistry]{}}

// claimsOf returns the claims of the manager, and makes them if necessary. The caller holds the lock of
// claimsByManager.
func claimsOf(m elected) *claimRegistry {
	if known := claimsByManager.claims[m].Value(); known != nil {
		return known
	}
	made := &claimRegistry{claimants: map[claimKey][]claimant{}}
	claimsByManager.claims[m] = weak.Make(made)
	// When all operators are gone, the entry goes, too, unless another operator has replaced it meanwhile.
	runtime.AddCleanup(made, func(m elected) {
		claimsByManager.mu.Lock()
		defer claimsByManager.mu.Unlock()
		if claimsByManager.claims[m].Value() == nil {
			delete(claimsByManager.claims, m)
		}
	}, m)
	return made
}

// newClaim claims the name and all kinds of the operator. It claims nothing and returns an error if another operator
// has claimed one of them. Two spellings of one kind are only recognized as far as that is possible without a cluster;
// [claim.acquireResource] decides later, when discovery has resolved them.
func newClaim(m manager.Manager, o Options) (*claim, error) {
	places, err := o.StoragePointers()
	if err != nil {
		return nil, fmt.Errorf("asking the storages of operator %q for their places: %w", o.Name, err)
	}
	own := &claim{
		manager: m.Elected(), prefix: o.Prefix, operator: o.Name, storagePointers: places,
		selectors: o.distinctSelectors(),
	}
	if names, plain := o.Namespaces.PlainNames(); plain {
		own.namespaces = names
	}
	// The order of the locks is: claimsByManager, then the claims of one manager.
	claimsByManager.mu.Lock()
	defer claimsByManager.mu.Unlock()
	own.registry = claimsOf(own.manager)
	own.registry.mu.Lock()
	defer own.registry.mu.Unlock()
	for _, other := range own.registry.claims {
		if err := own.checkConflict(other); err != nil {
			return nil, err
		}
		if other.operator == own.operator {
			return nil, fmt.Errorf("another operator of this manager has the name %q, and the health checks of that "+
				"name: give one of them another name, or register all handlers with one operator", o.Name)
		}
	}
	own.registry.claims = append(own.registry.claims, own)
	return own, nil
}

// checkConflict returns an error if the two operators would share memory on one kind. Operators with the same prefix
// may share kinds if they serve different namespaces; [claim.acquireResource] rejects cluster-scoped kinds for them.
func (c *claim) checkConflict(other *claim) error {
	shared := other.sharedStorage(c.prefix, c.storagePointers)
	if shared == "" || c.prefix == other.prefix && c.isDisjoint(other) {
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

// isDisjoint reports whether no namespace can be served by both operators. Patterns are only matched when the operators
// run, so an operator with patterns is never apart from another one.
func (c *claim) isDisjoint(other *claim) bool {
	return len(c.namespaces) > 0 && len(other.namespaces) > 0 &&
		!slices.ContainsFunc(c.namespaces, func(name string) bool { return slices.Contains(other.namespaces, name) })
}

// sharedStorage describes the storage that the operator shares with a prefix and places; empty if they share none.
func (c *claim) sharedStorage(prefix string, places []string) string {
	if c.prefix == prefix {
		return samePrefix(prefix)
	}
	for _, place := range places {
		if slices.Contains(c.storagePointers, place) {
			return fmt.Sprintf("its memory at the same place, %s; give one of them another storage", place)
		}
	}
	return ""
}

// samePrefix is the message for two operators with one prefix. It goes into takenError.
func samePrefix(prefix string) string {
	return fmt.Sprintf("the same annotation prefix %q; give one of them another name", prefix)
}

// takenError says which operator has claimed the kind, and which storage both would share.
func takenError(operator, shared string) error {
	return fmt.Errorf("operator %q of this process does already, with %s", operator, shared)
}

// dropClaim removes the claim when the operator has ended, so that another one may take its place.
func (c *claim) dropClaim() {
	claimsByManager.mu.Lock()
	defer claimsByManager.mu.Unlock()
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	c.registry.claims = slices.DeleteFunc(c.registry.claims, func(other *claim) bool { return other == c })
	// The manager is not referenced any more: do not wait for the garbage collector.
	if len(c.registry.claims) == 0 {
		delete(claimsByManager.claims, c.manager)
	}
}

// acquireResource reserves a resource until release is called. Discovery has resolved the resource here, so different
// spellings do not matter. An operator cannot reserve a resource twice either, because all its versions are the same
// objects.
func (c *claim) acquireResource(r discovery.Resource) (release func(), err error) {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	at := claimKey{c.prefix, r.GroupResource()}
	for _, held := range c.registry.claimants[at] {
		switch {
		case held.claim.operator == c.operator:
			return nil, fmt.Errorf("operator %q cannot handle %s: it handles the same objects as %s already",
				c.operator, r.GroupVersionKind, held.kind)
		case r.Namespaced && c.isDisjoint(held.claim): // both serve it, in different namespaces
		default:
			return nil, fmt.Errorf(
				"operator %q cannot handle %s: %w", c.operator, r.GroupVersionKind,
				takenError(held.claim.operator, samePrefix(c.prefix)),
			)
		}
	}
	c.registry.claimants[at] = append(c.registry.claimants[at], claimant{c, r.GroupVersionKind})
	return func() { c.registry.releaseResource(at, c) }, nil
}

// releaseResource ends the reservation of the place for one operator. Other namespaces of it may have other operators.
func (c *claimRegistry) releaseResource(at claimKey, by *claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := slices.DeleteFunc(c.claimants[at], func(held claimant) bool { return held.claim == by })
	if c.claimants[at] = left; len(left) == 0 {
		delete(c.claimants, at)
	}
}
