package peering

import (
	"sync"
)

// PauseNamespaces makes the peering of each namespace close the gate of this namespace instead of the operator's gate.
// The operator's gate is closed while the gates of all namespaces are closed: then the peers act in the whole scope,
// and cluster-scoped objects belong to them, too. It must be called before Run.
func (a *Attendance) PauseNamespaces(gates func(namespace string) AttemptGate) {
	a.namespaces = &namespaceGates{
		gateFor: gates, combined: closedByAll(a.gate.AddPart()), byNamespace: map[string]*namespaceGate{},
	}
}

// namespaceGates has one gate for each namespace with a peering object. Nil stands for an operator with a single gate.
type namespaceGates struct {
	gateFor  func(namespace string) AttemptGate
	combined *CombinedGate // of all namespaces

	mu          sync.Mutex
	byNamespace map[string]*namespaceGate // by namespace
}

// namespaceGate is the gate of one namespace.
type namespaceGate struct {
	gate     AttemptGate
	combined *CombinedGate // of the peering objects in the namespace
	part     *GatePart     // of the operator's gate
	objects  int           // the number of peering objects in use, one for each group of kinds
}

// acquireGate returns the gate of a namespace for one more peering object. Each call needs a release.
func (n *namespaceGates) acquireGate(namespace string) *namespaceGate {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.byNamespace[namespace]
	if one == nil {
		one = &namespaceGate{gate: n.gateFor(namespace), part: n.combined.AddPart()}
		// Each change of the namespace's gate also changes its part of the operator's gate.
		one.combined = ClosedByAny(Gates{one.gate, one.part})
		n.byNamespace[namespace] = one
	}
	one.objects++
	return one
}

// releasePart removes the part of one peering object, and undoes [namespaceGates.acquireGate]. With a nil receiver, it
// only removes the part.
func (n *namespaceGates) releasePart(namespace string, part *GatePart) {
	if n == nil {
		part.Remove()
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.byNamespace[namespace]
	// The last part of a namespace opens its gate when it is removed. The operator's gate must not depend on that gate
	// any more then, so this part is removed first.
	if one.objects--; one.objects == 0 {
		delete(n.byNamespace, namespace)
		one.part.Remove()
	}
	part.Remove()
}
